"""Whatever is sent as a credential: the caller is known, or refused. Nothing else happens."""

import asyncio
import base64
import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from oncekey.core.errors import Unauthorized
from oncekey.core.scope import SENTINELS
from oncekey.edge.identity.claims import ClaimRules
from oncekey.edge.identity.gateway import Gateway
from oncekey.edge.identity.identities import Identities
from oncekey.edge.identity.jwk import ring_of_jwks, ring_of_secret
from oncekey.edge.identity.jwks import GivenKeys
from oncekey.edge.identity.jwt import JwtVerifier
from oncekey.edge.identity.known import RESERVED_SUBJECTS, Known
from tests.fixtures.frozen import FrozenClock
from tests.fixtures.tokens import NOW, SECRET, claims_of, curve, jwks_of, rsa, secret_key, signed

CLOCK = FrozenClock(NOW * 1000)
RULES = ClaimRules(audience=frozenset({"orders"}), issuer="id")
GOOD = signed(rsa(), claims_of(aud="orders", iss="id"))
Lines = list[tuple[bytes, bytes]]


def identities(*, gateway: Gateway | None = None) -> Identities:
    keys = GivenKeys(ring_of_jwks(jwks_of(rsa(), curve())))
    return Identities(jwt=JwtVerifier(keys, RULES, CLOCK), gateway=gateway, clock=CLOCK)


def outcome(lines: Lines, asked: Identities, peer: str = "203.0.113.9") -> Known | None:
    """None for nobody, and for a refusal; any other error is one of the edge's own."""
    try:
        return asyncio.run(asked.identify(lines, peer))
    except Unauthorized:
        return None


def test_the_good_one_is_good() -> None:
    """What the others are measured by."""
    lines = [(b"authorization", f"Bearer {GOOD}".encode())]

    assert outcome(lines, identities()) is not None


names = st.sampled_from([b"authorization", b"x-api-key", b"x-tenant-id", b"x-subject", b"cookie"])
values = st.binary(max_size=80) | st.sampled_from(
    [b"Bearer ", b"Bearer " + GOOD.encode(), GOOD.encode(), b"Bearer a.b.c", b"Basic YTpi"]
)
parts = st.text("abcXYZ019-_=+/. \n", max_size=40)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
header_names = st.sampled_from(["alg", "kid", "typ", "jwk", "jku", "x5u", "crit", "b64", "zip"])
likely = st.sampled_from(
    ["none", "HS256", "RS256", "ES256", "EdDSA", "dir", "first", "P-256", "../../etc/passwd", "JWT"]
)


@given(st.lists(st.tuples(names, values), max_size=4))
def test_any_lines(lines: Lines) -> None:
    found = outcome(lines, identities())

    if found is not None:
        assert (b"authorization", b"Bearer " + GOOD.encode()) in lines


@given(parts, parts, parts)
def test_any_three_parts(head: str, payload: str, signature: str) -> None:
    lines = [(b"authorization", f"Bearer {head}.{payload}.{signature}".encode())]

    assert outcome(lines, identities()) is None


@given(st.dictionaries(header_names, likely | json_values), st.binary(max_size=70))
def test_any_header_with_a_signature_that_is_made_up(
    header: dict[str, Any], signature: bytes
) -> None:
    head = base64.urlsafe_b64encode(json.dumps(header).encode()).rstrip(b"=")
    made_up = base64.urlsafe_b64encode(signature).rstrip(b"=")
    payload = GOOD.split(".")[1].encode()
    lines = [(b"authorization", b"Bearer " + b".".join([head, payload, made_up]))]

    assert outcome(lines, identities()) is None


@given(st.integers(0, len(GOOD) - 1), st.sampled_from("AZaz09-_.=+ \0é"))
def test_any_change_of_a_good_one(place: int, character: str) -> None:
    changed = GOOD[:place] + character + GOOD[place + 1 :]
    lines = [(b"authorization", f"Bearer {changed}".encode())]

    assert (outcome(lines, identities()) is not None) == (changed == GOOD)


@given(
    st.dictionaries(
        st.sampled_from(["sub", "tenant_id", "project_id", "exp", "nbf", "iat", "aud", "iss"]),
        json_values | st.sampled_from(["_tenant", "service:oncekey", "acme", "id", "orders", NOW]),
    )
)
@example({"sub": "service:webhook-ingest"})
@example({"project_id": "_tenant"})
@example({"exp": 10**30})
def test_any_claims_that_an_issuer_signs(claims: dict[str, Any]) -> None:
    """Also an issuer that is deceived by its users makes nobody OnceKey itself."""
    payload = json.dumps({**claims_of(aud="orders", iss="id"), **claims}).encode()
    token = signed(secret_key(), payload, algorithm="HS256")
    verifier = JwtVerifier(GivenKeys(ring_of_secret(SECRET)), RULES, CLOCK)
    found = outcome(
        [(b"authorization", f"Bearer {token}".encode())], Identities(jwt=verifier, clock=CLOCK)
    )

    if found is not None:
        tenant, project, kind, identifier = found.namespace.removeprefix("t-").split(":")
        assert f"{kind}:{identifier}" not in RESERVED_SUBJECTS
        assert project not in SENTINELS or claims.get("project_id") is None
        assert tenant == str(claims.get("tenant_id", "acme"))


@given(
    st.lists(
        st.tuples(
            st.sampled_from([b"x-tenant-id", b"x-project-id", b"x-subject"]),
            st.binary(max_size=30) | st.sampled_from([b"acme", b"_tenant", b"service:oncekey"]),
        ),
        max_size=4,
    )
)
@example([(b"x-tenant-id", b"acme"), (b"x-subject", b"_tenant")])
@example([(b"x-tenant-id", b"acme"), (b"x-subject", b"a"), (b"x-project-id", b"_tenant")])
def test_any_headers_of_a_gateway(lines: Lines) -> None:
    found = outcome(lines, identities(gateway=Gateway(["10.0.0.1"])), "10.0.0.1")

    if found is not None:
        assert len(found.namespace.split(":")) == 4
        assert found.identity.subject not in RESERVED_SUBJECTS
        assert (b"x-project-id", b"_tenant") not in lines
        assert outcome(lines, identities(gateway=Gateway(["10.0.0.1"])), "10.0.0.2") is None
