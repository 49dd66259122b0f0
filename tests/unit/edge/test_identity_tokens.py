"""Tokens: those that their issuer signed for us are believed, and no others."""

import hmac
import json
import re
from typing import Any

import pytest
from joserfc.jwk import Key

from oncekey.core.errors import Unauthorized
from oncekey.edge.identity.claims import ClaimRules
from oncekey.edge.identity.jwk import KeyRing, ring_of_jwks, ring_of_pem, ring_of_secret
from oncekey.edge.identity.jwks import GivenKeys
from oncekey.edge.identity.jwt import JwtVerifier
from oncekey.edge.identity.known import Verified
from tests.fixtures.frozen import FrozenClock
from tests.fixtures.tokens import (
    NOW,
    SECRET,
    claims_of,
    curve,
    jwks_of,
    part,
    pem_of,
    rsa,
    secret_key,
    signed,
)

pytestmark = pytest.mark.anyio


async def verified(token: str, ring: KeyRing, rules: ClaimRules | None = None) -> Verified:
    clock = FrozenClock(NOW * 1000)
    return await JwtVerifier(GivenKeys(ring), rules or ClaimRules(), clock).verify(token)


async def refused(token: str, ring: KeyRing, rules: ClaimRules | None = None) -> str:
    with pytest.raises(Unauthorized) as caught:
        await verified(token, ring, rules)
    assert token not in str(caught.value)
    return str(caught.value)


def published(*keys: Key, **options: Any) -> KeyRing:
    return ring_of_jwks(jwks_of(*keys), **options)


# -- good ones -------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"])
async def test_an_rsa_key_verifies_each_algorithm_of_its_kind(algorithm: str) -> None:
    token = signed(rsa(), algorithm=algorithm)

    for ring in (published(rsa()), ring_of_pem(pem_of(rsa()))):
        found = await verified(token, ring)
        assert found.known.namespace == "t-acme:shop:user:ada"
        assert found.known.role == "caller"


@pytest.mark.parametrize(
    "name, algorithm",
    [
        ("P-256", "ES256"),
        ("P-384", "ES384"),
        ("P-521", "ES512"),
        ("Ed25519", "EdDSA"),
        ("Ed25519", "Ed25519"),
        ("Ed448", "EdDSA"),
    ],
)
async def test_a_curve_verifies_its_own_algorithm_only(name: str, algorithm: str) -> None:
    key = curve(name)
    token = signed(key, algorithm=algorithm)

    for ring in (published(key), ring_of_pem(pem_of(key))):
        assert (await verified(token, ring)).known.identity.subject == "user:ada"
        other = signed(key, header={"alg": "ES256K", "kid": key.kid}, algorithm=algorithm)
        assert "no key fits" in await refused(other, ring)


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
async def test_a_secret_verifies_what_was_signed_with_it(algorithm: str) -> None:
    token = signed(secret_key(), algorithm=algorithm)

    assert (await verified(token, ring_of_secret(SECRET))).known.identity.tenant == "acme"
    await refused(token, ring_of_secret(SECRET + "!"))


async def test_one_given_key_needs_no_name() -> None:
    named = signed(rsa(), header={"alg": "RS256", "kid": "../../etc/passwd"})
    nameless = signed(rsa(), header={"alg": "RS256"})

    for token in (named, nameless):
        assert await verified(token, ring_of_pem(pem_of(rsa())))


async def test_without_a_kid_each_published_key_that_fits_is_tried() -> None:
    ring = published(curve(), rsa("second"), rsa())

    assert await verified(signed(rsa(), header={"alg": "RS256"}), ring)
    await refused(signed(rsa("third"), header={"alg": "RS256"}), ring)


async def test_it_is_believed_a_minute_at_most_and_never_beyond_its_expiry() -> None:
    ring = published(rsa())
    long, short = signed(rsa(), claims_of(exp=NOW + 300)), signed(rsa(), claims_of(exp=NOW + 2.5))

    found = await verified(long, ring)
    assert (found.until, found.expires_at) == ((NOW + 60) * 1000, (NOW + 300) * 1000)
    assert (await verified(short, ring)).expires_at == (NOW + 2.5) * 1000


# -- algorithms ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["none", "None", "NONE", "nOnE", "none ", "", "null"])
@pytest.mark.parametrize("signature", ["", "e30", "AA"])
async def test_no_token_goes_unsigned(name: str, signature: str) -> None:
    token = f"{part({'alg': name, 'typ': 'JWT'})}.{part(claims_of())}.{signature}"

    for ring in (published(rsa()), ring_of_pem(pem_of(rsa())), ring_of_secret(SECRET)):
        await refused(token, ring)


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
@pytest.mark.parametrize("kind", ["rsa", "P-256", "Ed25519"])
async def test_a_public_key_is_no_secret(kind: str, algorithm: str) -> None:
    """Whoever has the public key, everybody that is, could sign with it."""
    key = rsa() if kind == "rsa" else curve(kind)
    assert not isinstance(key, type(secret_key()))
    forms = [
        key.as_pem(private=False),
        key.as_pem(private=False).strip(),
        key.as_der(private=False),
        json.dumps(key.as_dict(private=False)).encode(),
        b"",
    ]
    for form in forms:
        header, payload = part({"alg": algorithm, "kid": key.kid}), part(claims_of())
        message = f"{header}.{payload}"
        token = f"{message}.{_mac(form, message, algorithm)}"
        for ring in (published(key), ring_of_pem(pem_of(key))):
            assert "no key fits" in await refused(token, ring)


def _mac(key: bytes, message: str, algorithm: str) -> str:
    digest = hmac.digest(key, message.encode(), f"sha{algorithm[2:]}")
    return part(digest)


async def test_only_pinned_algorithms_are_taken() -> None:
    pinned = frozenset({"RS256"})

    for ring in (published(rsa(), algorithms=pinned), ring_of_pem(pem_of(rsa()), pinned)):
        assert await verified(signed(rsa()), ring)
        assert "no key fits" in await refused(signed(rsa(), algorithm="PS256"), ring)


async def test_the_algorithm_of_the_header_is_the_one_that_is_checked() -> None:
    token = signed(rsa(), header={"alg": "RS512", "kid": "first"}, algorithm="RS256")

    assert "not signed" in await refused(token, published(rsa()))


# -- the header ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["jku", "x5u", "jwk", "x5c"])
async def test_a_header_brings_no_key(name: str) -> None:
    attacker = rsa("attacker")
    value = attacker.as_dict(private=False) if name == "jwk" else "http://127.0.0.1:9/keys"
    header = {"alg": "RS256", "kid": "first", name: value}

    assert "not signed" in await refused(signed(attacker, header=header), published(rsa()))
    assert await verified(signed(rsa(), header=header), published(rsa()))


@pytest.mark.parametrize(
    "more",
    [
        {"crit": ["exp"]},
        {"crit": []},
        {"crit": ["b64"], "b64": False},
        {"b64": False},
        {"cty": "JWT"},
        {"zip": "DEF"},
        {"enc": "A256GCM"},
        {"typ": "logout+jwt"},
        {"typ": "dpop+jwt"},
        {"typ": None},
        {"kid": 7},
        {"kid": {"a": 1}},
        {"kid": "k" * 600},
        {"alg": None},
        {"alg": 256},
        {"alg": ["RS256"]},
        {"alg": "RS256\x00"},
    ],
    ids=lambda more: json.dumps(more)[:40],
)
async def test_a_header_that_asks_for_more_is_refused(more: dict[str, Any]) -> None:
    token = signed(rsa(), header={"alg": "RS256", "kid": "first", **more})

    await refused(token, published(rsa()))


@pytest.mark.parametrize("kind", ["JWT", "jwt", "at+jwt", "application/at+jwt"])
async def test_types_of_tokens_that_say_who_calls(kind: str) -> None:
    header = {"alg": "RS256", "kid": "first", "typ": kind}

    assert await verified(signed(rsa(), header=header), published(rsa()))


@pytest.mark.parametrize(
    "kid",
    [
        "../../../dev/null",
        "/etc/passwd",
        "' OR '1'='1",
        "x' UNION SELECT 'key';--",
        "|id",
        "first\0",
        "",
    ],
)
async def test_a_kid_is_a_name_and_nothing_else(kid: str) -> None:
    header = {"alg": "RS256", "kid": kid}

    assert "no key fits" in await refused(signed(rsa(), header=header), published(rsa()))
    empty = signed(secret_key(b"\0" * 32), header={"alg": "HS256", "kid": kid}, algorithm="HS256")
    await refused(empty, published(rsa()))


# -- what was changed on the way -------------------------------------------------------------


async def test_another_key_under_the_right_name() -> None:
    header = {"alg": "RS256", "kid": "first"}

    assert "not signed" in await refused(signed(rsa("attacker"), header=header), published(rsa()))


async def test_every_part_is_what_was_signed() -> None:
    head, _, signature = signed(rsa()).split(".")
    other = part(claims_of(tenant_id="victim"))

    assert "not signed" in await refused(f"{head}.{other}.{signature}", published(rsa()))
    head = part({"alg": "RS256", "kid": "first", "more": 1})
    token = f"{head}.{part(claims_of())}.{signature}"
    assert "not signed" in await refused(token, published(rsa()))


async def test_a_signature_has_one_spelling() -> None:
    """Padding, other alphabets and loose bits at the end would make two tokens of one."""
    token = signed(curve(), algorithm="ES256")
    ring = published(curve())
    assert await verified(token, ring)

    head, payload, signature = token.split(".")
    loose = signature[:-1] + chr(ord(signature[-1]) + 1)
    for other in (signature + "=", signature + "==", loose, signature + "A", signature + "\n"):
        await refused(f"{head}.{payload}.{other}", ring)


@pytest.mark.parametrize("size", [0, 1, 63, 65, 128])
async def test_a_signature_of_another_length(size: int) -> None:
    head, payload, _ = signed(curve(), algorithm="ES256").split(".")

    await refused(f"{head}.{payload}.{part(bytes(size))}", published(curve()))
    # Zeros verified everything where nobody checked for them.
    await refused(f"{head}.{payload}.{part(bytes(64))}", published(curve()))


@pytest.mark.parametrize(
    "payload",
    [
        b'{"sub":"ada","sub":"bob","tenant_id":"acme","exp":1700000300}',
        b'{"sub":"ada","tenant_id":"acme","exp":1700000300,"a":{"b":1,"b":2}}',
        b'{"sub":"ada","tenant_id":"acme","exp":NaN}',
        b'{"sub":"ada","tenant_id":"acme","exp":Infinity}',
        b'\xef\xbb\xbf{"sub":"ada","tenant_id":"acme","exp":1700000300}',
        '{"sub":"ada","tenant_id":"acme","exp":1700000300}'.encode("utf-16"),
        b'{"sub":"\xff","tenant_id":"acme","exp":1700000300}',
        b'["sub"]',
        b'"eyJhbGciOiJub25lIn0.e30."',
        b"null",
        b"7",
        b"{",
        b"[" * 9000,
        b'{"a":' * 2000,
        b'{"sub":"ada","tenant_id":"acme","exp":' + b"9" * 5000 + b"}",
    ],
    ids=lambda payload: repr(payload[:30]),
)
async def test_a_payload_that_means_two_things_or_nothing(payload: bytes) -> None:
    assert "payload" in await refused(signed(rsa(), payload), published(rsa()))


async def test_a_header_that_means_two_things() -> None:
    header = b'{"alg":"none","alg":"RS256","kid":"first"}'

    assert "header" in await refused(signed(rsa(), header=header), published(rsa()))


async def test_a_token_within_a_token() -> None:
    inner = signed(rsa()).encode()

    await refused(signed(rsa(), inner), published(rsa()))
    await refused(signed(rsa(), header={"alg": "RS256", "cty": "JWT"}), published(rsa()))


@pytest.mark.parametrize("shape", ["{0}.{1}", "{0}.{1}.{2}.{2}", "{0}..{2}.{2}.{2}", ".{1}.{2}"])
async def test_an_encrypted_token_or_one_of_other_parts(shape: str) -> None:
    parts = signed(rsa()).split(".")

    assert re.search("three parts", await refused(shape.format(*parts), published(rsa())))


async def test_a_token_has_a_length() -> None:
    token = signed(rsa(), claims_of(more="x" * 12_000))
    assert len(token) > 16 << 10

    assert "longer than" in await refused(token, published(rsa()))
