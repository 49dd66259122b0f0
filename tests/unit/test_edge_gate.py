"""`/edge/decide`: what a gateway is told, whatever its client sends beside it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncekey.edge.asked import Asked
from oncekey.edge.gate import gate
from oncekey.edge.identity.known import Known
from oncekey.edge.policy import RULE_KEYS, EdgeRoute, Policy, Table
from oncekey.edge.proxy import ANONYMOUS
from oncekey.wire.identity import Identity
from oncekey.wire.problem import Response, problem
from oncekey.wire.rule import rule_of

ANNA = Known(Identity("user:anna/1", "acme", "shop"), "t-acme:shop:user:anna%2F1")
ADMIN = Known(Identity("user:root", "acme", "shop"), "t-acme:shop:user:root", "admin")
IDENTITY = {"x-tenant-id": "acme", "x-project-id": "shop", "x-subject": "user:anna%2F1"}


def route(path: str, policy: Policy, *methods: str, **options: Any) -> EdgeRoute:
    return EdgeRoute(path, policy, rule_of(key=RULE_KEYS[policy], methods=methods), **options)


TABLE = Table(
    [
        route("/orders", "REQUIRED_A", "POST"),
        route("/orders", "PROHIBITED", "GET"),
        route("/orders/{id}", "ACCEPTED", "PUT", "PATCH"),
        route("/hooks/{rest:path}", "REQUIRED_B", "POST"),
        route("/imports", "HANDLER_INTERNAL_C", "POST"),
        route("/tenant", "ACCEPTED", "POST", level="tenant"),
        route("/platform", "ACCEPTED", "POST", level="platform"),
        route("/open", "ACCEPTED", "POST", anonymous=True),
    ]
)


def asked(
    *lines: tuple[bytes, bytes], method: str = "GET", path: str = "/edge/decide", query: bytes = b""
) -> Asked:
    return Asked(method, path, path.encode(), query, list(lines), "127.0.0.1", "http")


def told(method: str, target: str, family: str = "original") -> list[tuple[bytes, bytes]]:
    names = (f"x-{family}-method".encode(), f"x-{family}-uri".encode())
    return [(names[0], method.encode()), (names[1], target.encode())]


def decided(
    method: str,
    target: str,
    *keys: str,
    known: Known | Response = ANNA,
    family: str = "original",
    query: bytes = b"",
) -> Response:
    lines = [(b"idempotency-key", key.encode()) for key in keys]
    return gate(TABLE, known, asked(*told(method, target, family), *lines, query=query))


def lines_of(answer: Response) -> dict[str, str]:
    """What a gateway copies of them."""
    found = {name.decode(): value.decode() for name, value in answer.headers}
    assert len(found) == len(answer.headers)
    return {
        name: value
        for name, value in found.items()
        if name.startswith("x-") or name == "idempotency-key"
    }


def code_of(answer: Response) -> str:
    found: str = json.loads(answer.body)["type"].rpartition("/")[2]
    return found


@pytest.mark.parametrize("family", ["original", "forwarded"])
def test_a_key_is_namespaced(family: str) -> None:
    answer = decided("POST", "/orders?a=b", "k-1", family=family)
    assert (answer.status, answer.body) == (200, b"")
    assert lines_of(answer) == {
        **IDENTITY,
        "idempotency-key": "t-acme:shop:user:anna%2F1:k-1",
        "x-idempotency-policy": "REQUIRED_A",
    }


@pytest.mark.parametrize(
    "method, target, keys, policy",
    [
        ("PUT", "/orders/7", [], "ACCEPTED"),
        ("GET", "/orders", [], "PROHIBITED"),
        ("POST", "/imports", [], "HANDLER_INTERNAL_C"),
        ("POST", "/imports", ["not even a key"], "HANDLER_INTERNAL_C"),
    ],
)
def test_without_a_key_there_is_no_line_for_one(
    method: str, target: str, keys: list[str], policy: str
) -> None:
    """An empty one would be a key to some services, the same for everybody."""
    answer = decided(method, target, *keys)
    assert answer.status == 200
    assert lines_of(answer) == {**IDENTITY, "x-idempotency-policy": policy}


@pytest.mark.parametrize(
    "method, target, keys, status, code",
    [
        ("POST", "/orders", [], 400, "idempotency-key-missing"),
        ("POST", "/orders", [""], 400, "idempotency-key-invalid"),
        ("POST", "/orders", ["a", "a"], 400, "idempotency-key-invalid"),
        ("POST", "/orders", ["t-acme:shop:user:anna%2F1:k"], 400, "idempotency-key-invalid"),
        ("POST", "/orders", ["t-k"], 400, "idempotency-key-invalid"),
        ("GET", "/orders", ["k"], 400, "idempotency-key-prohibited"),
        ("POST", "/hooks/a/b", ["k"], 400, "identifier-missing"),
        ("DELETE", "/orders", [], 404, "not-found"),
        ("post", "/orders", ["k"], 404, "not-found"),
        ("POST", "/nowhere", ["k"], 404, "not-found"),
        ("POST", "/orders/", ["k"], 404, "not-found"),
        ("POST", "/orders/../orders", ["k"], 400, "invalid-input"),
        ("POST", "/orders/%2e%2e/orders", ["k"], 400, "invalid-input"),
        ("POST", "//orders", ["k"], 400, "invalid-input"),
        ("POST", "/orders%2f7", ["k"], 400, "invalid-input"),
        ("POST", "http://127.0.0.1/orders", ["k"], 400, "invalid-input"),
        ("PO ST", "/orders", ["k"], 400, "invalid-input"),
        ("POST", "/platform", ["k"], 401, "unauthorized"),
    ],
)
def test_refusals(method: str, target: str, keys: list[str], status: int, code: str) -> None:
    answer = decided(method, target, *keys)
    assert (answer.status, code_of(answer)) == (status, code)
    assert lines_of(answer) == {}

    only_403 = decided(method, target, *keys, query=b"refuse=403")
    assert only_403.status == (401 if status == 401 else 403)
    assert only_403[1:] == answer[1:]


def test_another_spelling_of_a_path_has_its_policy() -> None:
    assert code_of(decided("POST", "/%6frders")) == "idempotency-key-missing"


def test_keys_of_a_tenant_and_of_the_platform() -> None:
    ours = lines_of(decided("POST", "/tenant", "k"))
    assert ours["x-project-id"] == "_tenant"
    assert ours["idempotency-key"] == "t-acme:_tenant:user:anna%2F1:k"
    theirs = lines_of(decided("POST", "/platform", "k", known=ADMIN))
    assert theirs["idempotency-key"] == "t-acme:_platform:user:root:k"
    assert decided("POST", "/orders", "k", known=ADMIN).status == 401


@pytest.mark.parametrize("target", ["/orders", "/nowhere", "/platform"])
def test_without_credentials(target: str) -> None:
    """Nobody learns which routes there are."""
    answer = decided("POST", target, "k", known=ANONYMOUS)
    assert (answer.status, code_of(answer)) == (401, "unauthorized")
    assert (b"www-authenticate", b'Bearer realm="oncekey"') in answer.headers
    assert decided("POST", target, known=ANONYMOUS, query=b"refuse=403").status == 401


def test_a_route_may_let_everybody_in() -> None:
    answer = decided("POST", "/open", "k", known=ANONYMOUS)
    assert lines_of(answer)["idempotency-key"] == "t-default:_tenant:client:anonymous:k"


@pytest.mark.parametrize("target", ["/orders", "/open", "/nowhere"])
def test_credentials_that_are_not_believed(target: str) -> None:
    away = problem("identity-unavailable")
    assert decided("POST", target, "k", known=away) == away
    assert decided("POST", target, "k", known=away, query=b"refuse=403").status == 403


# -- how a gateway tells what it asks about -------------------------------------------------


@pytest.mark.parametrize(
    "lines",
    [
        [],
        told("POST", "/orders")[:1],
        told("POST", "/orders")[1:],
        told("POST", ""),
        told("", "/orders"),
        told("", ""),
    ],
    ids=str,
)
def test_half_a_story(lines: list[tuple[bytes, bytes]]) -> None:
    answer = gate(TABLE, ANNA, asked(*lines, (b"idempotency-key", b"k")))
    assert answer.status == 400
    assert "X-Original-URI" in json.loads(answer.body)["detail"]


ORIGINAL, FORWARDED = told("POST", "/orders"), told("POST", "/orders", "forwarded")


@pytest.mark.parametrize(
    "lines",
    [
        ORIGINAL + FORWARDED,
        FORWARDED + ORIGINAL,
        ORIGINAL + FORWARDED[:1],
        ORIGINAL + FORWARDED[1:],
        ORIGINAL[:1] + FORWARDED[1:],
        ORIGINAL * 2,
        ORIGINAL + told("GET", "/open")[1:],
        FORWARDED + told("", "", "forwarded"),
    ],
    ids=str,
)
def test_two_stories(lines: list[tuple[bytes, bytes]]) -> None:
    """The gateway's and the client's: which is whose cannot be seen here."""
    answer = gate(TABLE, ANNA, asked(*lines, (b"idempotency-key", b"k")))
    assert (answer.status, code_of(answer)) == (400, "invalid-input")
    assert "twice" in json.loads(answer.body)["detail"]


def test_told_by_the_request_itself() -> None:
    """As Envoy does: the path follows `/edge/decide`."""
    key = (b"idempotency-key", b"k")
    it = asked(key, method="POST", path="/edge/decide/orders", query=b"refuse=403")
    assert lines_of(gate(TABLE, ANNA, it))["idempotency-key"].endswith(":k")
    without = gate(TABLE, ANNA, it._replace(raw_path=b"/edge/decide/imports"))
    assert lines_of(without)["x-envoy-auth-headers-to-remove"] == "idempotency-key"
    assert gate(TABLE, ANNA, it._replace(headers=[])).status == 400
    assert gate(TABLE, ANNA, it._replace(headers=[key, *ORIGINAL])).status == 400
    assert gate(TABLE, ANNA, it._replace(raw_path=b"/edge/%64ecide/orders")).status == 400
    assert gate(TABLE, ANNA, it._replace(raw_path=b"/edge/decide//orders")).status == 400


@pytest.mark.parametrize("query", [b"refuse=400", b"refuse=403&a=b", b"a=%2f"])
def test_the_query_of_a_client_says_nothing(query: bytes) -> None:
    """Some gateways keep it when they ask."""
    assert decided("POST", "/orders", "k", query=query).status == 200
    assert decided("POST", "/orders", query=query).status == 400


LINES = st.lists(
    st.tuples(
        st.sampled_from([name for name, _ in ORIGINAL + FORWARDED] + [b"idempotency-key"]),
        st.sampled_from([b"POST", b"GET", b"/orders", b"/open", b"/nowhere", b"k", b""])
        | st.binary(max_size=20),
    ),
    max_size=6,
)


@given(LINES, st.sampled_from([ANNA, ADMIN, ANONYMOUS, problem("unauthorized")]))
def test_whatever_comes_a_gateway_is_answered(
    lines: list[tuple[bytes, bytes]], known: Known | Response
) -> None:
    answer = gate(TABLE, known, asked(*lines, query=b"refuse=403"))
    assert answer.status in {200, 401, 403}
    if answer.status == 200:
        names = [name for name, _ in lines if name != b"idempotency-key"]
        assert len(names) == len(set(names)) == 2
        assert not isinstance(known, Response)
        for _, value in answer.headers:
            assert value.isascii()
            assert value.decode().isprintable()
