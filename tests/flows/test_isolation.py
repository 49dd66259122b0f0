"""Callers never share a key, whatever they write into their requests: no answer, no hint."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest

from oncekey import Identity, InvalidInput
from oncekey.wire.identity import namespace_for, namespace_of_credentials
from tests.fixtures.caller import Answer, request_of, send
from tests.fixtures.street import Server, Street

CALLERS: dict[str, dict[str, str]] = {
    "nobody": {},
    "bearer a": {"authorization": "Bearer a"},
    "bearer b": {"authorization": "Bearer b"},
    "another scheme": {"authorization": "Basic a"},
    "bearer in another case": {"authorization": "Bearer A"},
    "key a": {"x-api-key": "a"},
    "key b": {"x-api-key": "b"},
    "session a": {"cookie": "session=a"},
    "session b": {"cookie": "theme=dark; session=b; lang=de"},
    "django session a": {"cookie": "sessionid=a"},
    "bearer a in session a": {"authorization": "Bearer a", "cookie": "session=a"},
    "bearer a in session b": {"authorization": "Bearer a", "cookie": "session=b"},
    "bearer a with key a": {"authorization": "Bearer a", "x-api-key": "a"},
}


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Street]:
    folder = tmp_path_factory.mktemp("isolation")
    made = Street(f"sqlite:///{folder}/oncekey.db", folder)
    yield made
    made.close()


@pytest.fixture(scope="module")
def server(street: Street) -> Server:
    return street.open(in_flight="conflict")


def ask(server: Server, path: str, key: str, caller: str, **options: Any) -> Answer:
    return server.ask(path, key, headers=CALLERS[caller], **options)


def test_callers_with_one_key_have_answers_of_their_own(server: Server, street: Street) -> None:
    first = {caller: ask(server, "/rerun", "k", caller) for caller in CALLERS}
    assert {(answer.status, answer.replayed) for answer in first.values()} == {(201, False)}
    assert len({answer.body for answer in first.values()}) == len(CALLERS)
    for caller, answer in first.items():
        again = ask(server, "/rerun", "k", caller)
        assert (again.replayed, again.body) == (True, answer.body)
    assert len(street.effects("k")) == len(CALLERS)


def test_a_caller_learns_nothing_of_a_key_that_another_uses(server: Server) -> None:
    """Neither that it is taken, by a 422, nor that it runs, by a 409."""
    taken = ask(server, "/rerun", "taken", "bearer a", body=b'{"amount": 1}')
    other = ask(server, "/rerun", "taken", "bearer b", body=b'{"amount": 2}')
    assert (taken.status, other.status) == (201, 201)
    assert taken.header("x-operation-id") != other.header("x-operation-id")


def test_a_caller_learns_nothing_of_a_key_that_runs_for_another(street: Street) -> None:
    server = street.open(in_flight="conflict")
    running = server.order("/held", "runs", headers=CALLERS["bearer a"])
    other = server.order("/held", "runs", headers=CALLERS["bearer b"])
    server.go()
    assert {running.answer().status, other.answer().status} == {201}
    assert len(street.effects("runs")) == 2


@pytest.mark.parametrize(
    "headers",
    [
        {"cookie": "lang=en; session=a"},
        {"cookie": "session=a; _ga=GA1.2.3; theme=light"},
        {"cookie": "csrftoken=x", "Cookie": "session=a"},
    ],
)
def test_other_cookies_do_not_make_another_caller(server: Server, headers: dict[str, str]) -> None:
    first = server.ask("/rerun", "cookies", headers=CALLERS["session a"])
    again = server.ask("/rerun", "cookies", headers=headers)
    assert (again.replayed, again.body) == (True, first.body)


def test_credentials_in_another_order_are_the_same_caller(server: Server) -> None:
    lines = {"authorization": "Bearer z", "x-api-key": "y", "cookie": "session=x"}
    first = server.ask("/rerun", "order", headers=lines)
    again = server.ask("/rerun", "order", headers=dict(reversed(lines.items())))
    assert (again.replayed, again.body) == (True, first.body)


FORGED_KEYS = [
    "t-default:_tenant:client:anonymous",
    "t-victim",
    '"t-victim"',
    "k:POST /rerun",
    "k\tk",
    "k%00",
    "../k",
    "k/k",
    "k,k",
    "k;q=1",
    "ｋ",
]


@pytest.mark.parametrize("key", FORGED_KEYS)
def test_a_key_that_imitates_a_scope_is_refused(server: Server, key: str) -> None:
    answer = server.ask("/rerun", key)
    assert (answer.status, answer.problem) == (400, "idempotency-key-invalid")


@pytest.mark.parametrize(
    "line",
    [
        "POST /rerun/ HTTP/1.1",
        "POST //rerun HTTP/1.1",
        "POST /./rerun HTTP/1.1",
        "POST /%72erun HTTP/1.1",
        "POST /rerun%00 HTTP/1.1",
        "POST /rerun;a=b HTTP/1.1",
        "POST /RERUN HTTP/1.1",
        "POST /rerun?a=b HTTP/1.1",
        "POST /rerun%3Fa=b HTTP/1.1",
        "PUT /rerun HTTP/1.1",
        "PATCH /rerun HTTP/1.1",
        "DELETE /rerun HTTP/1.1",
    ],
)
def test_an_answer_belongs_to_its_method_and_path(server: Server, line: str) -> None:
    """Another spelling is another operation, or is refused; it never fetches this one's answer."""
    first = server.ask("/rerun", "path")
    raw = request_of("/rerun", "path").replace(b"POST /rerun HTTP/1.1", line.encode())
    answer = send(server.port, raw)
    assert answer is not None
    assert answer.body != first.body
    assert answer.status == 201 or answer.problem == "idempotency-key-reused"


# -- what an application says of its callers ---------------------------------------------

NAMES = [
    "bob", "bob:", ":bob", "bob:1", "bob%3A1", "bob%3a1", "bob%253A1", "BOB", "bob ", " bob",
    "b\u00f3b", "bo\u0301b", "bob\0", "bob\n", "bob/../ada", "user:bob", "client:anonymous",
    "t-default:_tenant:user:bob", "bob@x", "bob+x@x", "\ud800", "*", "%", "ada",
]  # fmt: skip


def test_no_two_names_are_the_same_caller() -> None:
    spaces = [namespace_for(f"user:{name}") for name in NAMES]
    assert len(set(spaces)) == len(NAMES)
    assert all(space.isascii() and space.isprintable() for space in spaces)


def test_a_name_never_reaches_into_another_tenant_project_or_type() -> None:
    forged = [
        Identity("user:a", tenant="acme", project="shop"),
        Identity("user:a:shop", tenant="acme"),
        Identity("user:shop:user:a", tenant="acme"),
        Identity("client:user:a", tenant="acme", project="shop"),
        Identity("user:a", tenant="acme-shop"),
        Identity("user:a", tenant="acme", project="shop-user"),
    ]
    spaces = [namespace_for(identity) for identity in forged]
    for one, two in combinations(spaces, 2):
        assert one != two


@pytest.mark.parametrize(
    "identity",
    [
        Identity("user:a", tenant="acme:shop"),
        Identity("user:a", tenant=""),
        Identity("user:a", tenant="acme", project="a:b"),
        Identity("user:a", tenant="acme", project="_root"),
        Identity("root:a"),
        Identity("user:"),
    ],
)
def test_what_could_be_mistaken_is_refused(identity: Identity) -> None:
    with pytest.raises(InvalidInput):
        namespace_for(identity)


def test_nobody_can_name_the_space_of_somebodys_credentials() -> None:
    """It is a digest: whoever could write it down would have to know the credentials."""
    theirs = namespace_of_credentials([b"Bearer secret"])
    assert b"secret" not in theirs.encode()
    assert theirs.startswith("t-default:_tenant:client:")
    assert namespace_of_credentials([b"Bearer", b"secret"]) != theirs
    assert namespace_of_credentials([]) == namespace_of_credentials([b"", b""])
