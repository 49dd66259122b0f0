"""Credentials that are none, are no longer, or are for something else: nobody gets in by them, and
every refusal is the same."""

import json
import time
from typing import Any

import pytest
from joserfc.jwk import OctKey

from tests.fixtures.edge_site import SECRET
from tests.fixtures.stronghold import ISSUER, Stronghold, bearer, head
from tests.fixtures.tokens import part, rsa, secret_key, signed

OURS = OctKey.import_key(SECRET)
HS256 = {"alg": "HS256", "typ": "JWT"}


def claims(**others: Any) -> dict[str, Any]:
    """Good ones, but for those that are given; None leaves one out."""
    now = int(time.time())
    good = {"sub": "user:alice", "tenant_id": "acme", "project_id": "shop", "aud": "edge",
            "iss": ISSUER, "iat": now, "exp": now + 300, **others}  # fmt: skip
    return {name: value for name, value in good.items() if value is not None}


def made(header: Any = None, payload: Any = None, key: Any = OURS) -> str:
    return signed(key, claims() if payload is None else payload, header or HS256, algorithm="HS256")


def unsigned(header: dict[str, Any], signature: str = "") -> str:
    return f"{part(header)}.{part(claims())}.{signature}"


def tampered(token: str, place: int) -> str:
    """One letter of it is another, such that the bytes it stands for are others too."""
    parts = token.split(".")
    middle = len(parts[place]) // 2
    other = "A" if parts[place][middle] != "A" else "Q"
    parts[place] = parts[place][:middle] + other + parts[place][middle + 1 :]
    return ".".join(parts)


def later(seconds: int) -> int:
    return int(time.time()) + seconds


BAD = {
    "no algorithm": lambda: unsigned({"alg": "none"}),
    "no algorithm, spelled in another way": lambda: unsigned({"alg": "None"}),
    "no algorithm, in capitals": lambda: unsigned({"alg": "NONE"}),
    "no algorithm, with the signature of a good one": lambda: unsigned(
        {"alg": "none"}, bearer().split(".")[2]
    ),
    "no algorithm named": lambda: made({"typ": "JWT"}),
    "an empty algorithm": lambda: made({"alg": ""}),
    "an algorithm that is no name": lambda: made({"alg": ["HS256"]}),
    "an algorithm in small letters": lambda: made({"alg": "hs256"}),
    "another algorithm than it is signed by": lambda: made({"alg": "HS512"}),
    "an algorithm of two halves": lambda: made({"alg": "RS256"}),
    "a key of two halves": lambda: signed(rsa(), claims(), {"alg": "RS256"}, algorithm="RS256"),
    "encrypted": lambda: made({"alg": "dir", "enc": "A128GCM"}),
    "of five parts": lambda: f"{made()}.AAAA.BBBB",
    "of two parts": lambda: made().rpartition(".")[0],
    "of two parts and a dot": lambda: made().rpartition(".")[0] + ".",
    "another secret": lambda: made(key=secret_key("another secret of thirty-two bytes or more")),
    "an empty secret": lambda: made(key=secret_key("\0" * 32)),
    "its own key with it": lambda: made(
        {**HS256, "jwk": {"kty": "oct", "k": "AAAA"}}, key=secret_key()
    ),
    "an address of keys": lambda: made({**HS256, "jku": "http://127.0.0.1:1/k"}, key=secret_key()),
    "a path as the name of its key": lambda: made(
        {**HS256, "kid": "../../dev/null"}, key=secret_key()
    ),
    "critical extensions": lambda: made({**HS256, "crit": ["exp"]}),
    "a payload that is not encoded": lambda: made({**HS256, "b64": False, "crit": ["b64"]}),
    "a packed payload": lambda: made({**HS256, "zip": "DEF"}),
    "a token within a token": lambda: made({**HS256, "cty": "JWT"}),
    "of another type": lambda: made({**HS256, "typ": "logout+jwt"}),
    "a header with a member twice": lambda: made(b'{"alg":"none","alg":"HS256"}'),
    "a payload with a member twice": lambda: made(
        payload=json.dumps(claims())[:-1].encode() + b',"sub":"user:root"}'
    ),
    "a payload that is no object": lambda: made(payload=b"[1]"),
    "a payload that is no JSON": lambda: made(payload=b"\xff\xfe"),
    "half a surrogate": lambda: made(
        payload=json.dumps(claims(sub="user:X")).replace("X", "\\ud800").encode()
    ),
    "a payload without an end": lambda: made(payload=b"[" * 5000),
    "a number without an end": lambda: made(
        payload=json.dumps(claims(sub="N")).replace('"N"', "9" * 6000).encode()
    ),
    "expired": lambda: made(payload=claims(exp=later(-1))),
    "expired long ago": lambda: made(payload=claims(exp=1)),
    "without an expiry": lambda: made(payload=claims(exp=None)),
    "an expiry that is text": lambda: made(payload=claims(exp=str(later(300)))),
    "an expiry that is true": lambda: made(payload=claims(exp=True)),
    "an expiry in milliseconds": lambda: made(payload=claims(exp=later(300) * 1000)),
    "an infinite expiry": lambda: made(
        payload=json.dumps(claims(exp=7)).replace("7", "1e999").encode()
    ),
    "an expiry that is no number": lambda: made(
        payload=json.dumps(claims(exp=7)).replace(" 7", " NaN").encode()
    ),
    "an expiry below zero": lambda: made(payload=claims(exp=-later(300))),
    "not good yet": lambda: made(payload=claims(nbf=later(100))),
    "issued in the future": lambda: made(payload=claims(iat=later(100))),
    "for nobody": lambda: made(payload=claims(aud=None)),
    "for somebody else": lambda: made(payload=claims(aud="other")),
    "for others": lambda: made(payload=claims(aud=["other", "edge2"])),
    "for something like us": lambda: made(payload=claims(aud="edge ")),
    "for us in capitals": lambda: made(payload=claims(aud="EDGE")),
    "for an object": lambda: made(payload=claims(aud={"edge": True})),
    "for a list in a list": lambda: made(payload=claims(aud=[["edge"]])),
    "of nobody": lambda: made(payload=claims(iss=None)),
    "of another issuer": lambda: made(payload=claims(iss="https://evil.example")),
    "of an issuer with a slash": lambda: made(payload=claims(iss=ISSUER + "/")),
    "of several issuers": lambda: made(payload=claims(iss=[ISSUER])),
    "without a subject": lambda: made(payload=claims(sub=None)),
    "without a tenant": lambda: made(payload=claims(tenant_id=None)),
    "another header": lambda: tampered(made(), 0),
    "another payload": lambda: tampered(made(), 1),
    "another signature": lambda: tampered(made(), 2),
    "the signature of another": lambda: (
        made().rpartition(".")[0] + "." + bearer(subject="user:bob").split(".")[2]
    ),
    "with a blank in it": lambda: made().replace(".", " .", 1),
    "padded": lambda: made() + "=",
    "longer than any": lambda: made({**HS256, "x": "y" * 20_000}),
    "empty": lambda: "",
    "only dots": lambda: "..",
    "not ASCII": lambda: made() + "\xe9",
    "quoted": lambda: f'"{made()}"',
    "two of them": lambda: f"{made()}, {made()}",
}


def refusal(fort: Stronghold) -> Any:
    """What somebody gets who says nothing at all."""
    with fort.wire(head(key="k", credentials=None)) as wire:
        return wire.answer().shape


def tried(fort: Stronghold, *lines: str, path: str = "/api/v1/orders") -> Any:
    with fort.wire(head(path, *lines, key="k", credentials=None)) as wire:
        return wire.answer().shape


def test_the_good_one_is_good(fort: Stronghold) -> None:
    """What the others are measured by."""
    for place, token in enumerate((made(), made(payload=claims(aud=["other", "edge"])))):
        with fort.wire(head(key=f"good-{place}", credentials=token)) as wire:
            assert wire.answer().status == 201
    assert len(fort.effects) == 2


@pytest.mark.parametrize("name", BAD)
def test_a_bad_token_is_as_good_as_none(fort: Stronghold, name: str) -> None:
    line = f"Authorization: Bearer {BAD[name]()}"
    assert tried(fort, line) == refusal(fort)
    # Where nobody needs to be known, who says who he is must be.
    assert tried(fort, line, path="/open/notes") == refusal(fort)
    assert fort.effects == []


@pytest.mark.parametrize(
    "lines",
    [
        ["Authorization: Bearer {good}", "Authorization: Bearer {good}"],
        ["Authorization: Bearer {good}", "Authorization: Bearer {bob}"],
        ["authorization: Bearer {bob}", "AUTHORIZATION: Bearer {good}"],
        ["Authorization: Bearer {good}", "X-API-Key: {bob}"],
        ["Authorization: Bearer {good}", "X-API-Key: ok_made-up"],
        ["X-API-Key: {good}"],
        ["Authorization: {good}"],
        ["Authorization: Basic {good}"],
        ["Authorization: Basic YWxpY2U6c2VjcmV0"],
        ["Authorization: Token {good}"],
        ["Authorization: Bearer{good}"],
        ["Authorization: Bearer\t{good}"],
        ["Authorization: Bearer Bearer {good}"],
        ["Authorization: Bearer, Bearer {good}"],
        ["Authorization: Digest username=alice"],
        ["Authorization: Negotiate AAAA"],
        ["Authorization:"],
        ["Authorization_: Bearer {good}"],
        ["X-Authorization: Bearer {good}"],
        ["Proxy-Authorization: Bearer {good}"],
        ["Cookie: Authorization=Bearer {good}; access_token={good}; session={good}"],
        ["X_API_Key: {good}"],
    ],
)
def test_a_good_token_in_a_bad_place_is_none(fort: Stronghold, lines: list[str]) -> None:
    tokens = {"good": made(), "bob": bearer(subject="user:bob")}
    assert tried(fort, *(line.format(**tokens) for line in lines)) == refusal(fort)
    assert tried(fort, path=f"/api/v1/orders?access_token={made()}") == refusal(fort)
    assert fort.effects == []


def test_a_token_ends_in_the_middle_of_a_connection(fort: Stronghold) -> None:
    """It was believed a moment ago, and is remembered; its end is exact all the same."""
    short = bearer(exp=later(2))
    with fort.wire() as wire:
        statuses = []
        while not statuses or statuses[-1] != 401:
            request = head(key=f"e{len(statuses)}", credentials=short)
            statuses.append(wire.send(request).answer().status)
        assert set(statuses[:-1]) == {201}
        assert len(fort.effects) == len(statuses) - 1
        assert wire.send(head(key="other")).answer().status == 201
        assert wire.send(head(key="e0", credentials=short)).answer().status == 401


# -- API keys ------------------------------------------------------------------------------------


def test_a_key_that_is_revoked_is_refused_as_if_it_had_never_been(fort: Stronghold) -> None:
    key = fort.api_key(tenant="acme", project="shop", subject="service:ci")
    line = f"X-API-Key: {key['secret']}"
    statuses = []
    with fort.wire() as wire:
        request = head("/api/v1/notes", line, credentials=None)
        assert [wire.send(request).answer().status for _ in range(3)] == [201] * 3
        # By another process, of which this one learns when it asks again.
        fort.command("apikeys", "revoke", key["id"])
        while not statuses or statuses[-1] != 401:
            statuses.append(wire.send(request).answer().status)
        assert [wire.send(request).answer().status for _ in range(5)] == [401] * 5
    assert set(statuses[:-1]) <= {201}
    assert tried(fort, line) == refusal(fort)
    assert {each.whose[2] for each in fort.effects} == {"service:ci"}
    assert not any(key["secret"] in value for each in fort.effects for _, value in each.headers)


def test_a_key_that_is_revoked_here_is_refused_at_once(fort: Stronghold) -> None:
    key = fort.api_key(tenant="acme", subject="service:ci")
    assert fort.ask(path="/api/v1/notes", bearer=key["secret"]).status_code == 201
    fort.manage("POST", f"apikeys/{key['id']}/revoke")
    assert fort.ask(path="/api/v1/notes", bearer=key["secret"]).status_code == 401


def test_a_key_that_has_expired_is_refused(fort: Stronghold) -> None:
    key = fort.api_key(tenant="acme", subject="service:ci", expires_in="1s")
    statuses = []
    while not statuses or statuses[-1] != 401:
        statuses.append(fort.ask(path="/api/v1/notes", bearer=key["secret"]).status_code)
    assert set(statuses[:-1]) <= {201}
    assert tried(fort, f"Authorization: Bearer {key['secret']}") == refusal(fort)


def test_keys_that_are_made_up_or_nearly_right_are_refused(fort: Stronghold) -> None:
    secret = fort.api_key(tenant="acme", subject="service:ci")["secret"]
    for made_up in (
        secret[:-1],
        secret + "A",
        secret.upper(),
        secret[:-1] + ("A" if secret[-1] != "A" else "B"),
        secret.removeprefix("ok_"),
        "ok_" + secret,
        secret.replace("ok_", "oka_"),
        "ok_",
        "oka_",
        "ok_" + "A" * 43,
        "ok_" + "A" * 30_000,
        f"{secret} {secret}",
        f"{secret},{secret}",
        f"'{secret}'",
    ):
        assert tried(fort, f"Authorization: Bearer {made_up}") == refusal(fort)
        assert tried(fort, f"X-API-Key: {made_up}") == refusal(fort)
    assert fort.effects == []


ADMIN_PATHS = [
    ("GET", "/api/admin/keys"),
    ("GET", "/api/admin/webhooks"),
    ("POST", "/api/admin/webhooks"),
    ("GET", "/api/admin/apikeys"),
    ("POST", "/api/admin/apikeys"),
    ("GET", "/api/admin/audit"),
    ("GET", "/api/admin/retention"),
    ("PUT", "/api/admin/retention/interactive"),
    ("GET", "/api/admin/openapi.json"),
    ("POST", "/platform/jobs"),
]


@pytest.mark.parametrize("method, path", ADMIN_PATHS)
def test_no_caller_is_an_admin(fort: Stronghold, method: str, path: str) -> None:
    caller = fort.api_key(tenant="acme", subject="user:alice")["secret"]
    names = ("admin", "root", "_platform", "operators")
    tokens = [bearer(), *(bearer(subject=f"service:{name}", role="admin") for name in names)]
    for each in (caller, caller.replace("ok_", "oka_"), *tokens):
        for lines in ([f"Authorization: Bearer {each}"], [f"X-API-Key: {each}"]):
            request = head(path, *lines, method=method, key="a", credentials=None, length=2) + b"{}"
            with fort.wire(request) as wire:
                assert wire.answer().status == 401
    assert fort.effects == []


@pytest.mark.parametrize(
    "method, path",
    [
        ("POST", "/api/v1/orders"),
        ("POST", "/api/v1/notes"),
        ("GET", "/api/v1/orders"),
        ("POST", "/api/v1/members"),
        ("PUT", "/files/x"),
        ("POST", "/open/notes"),
        ("GET", "/api/v1/orders/by-idempotency-key/k"),
        ("POST", "/api/tenants/default/workflows/x/start"),
        ("GET", "/api/tenants/acme/workflows"),
    ],
)
def test_no_admin_is_a_caller(fort: Stronghold, method: str, path: str) -> None:
    """A key for everything would be a key for everybody."""
    key = None if method == "GET" else "k"
    answer = fort.ask(method, path, key=key, bearer=fort.admin, json={})
    assert answer.status_code in {401, 404}
    assert fort.effects == []
