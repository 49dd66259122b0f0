"""The keys of tokens: what is taken from a JWKS, a PEM text or a secret, and what is left out."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, x25519
from cryptography.hazmat.primitives.asymmetric import rsa as native_rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import OKPKey
from joserfc.util import urlsafe_b64encode

from oncekey.config.kinds import ALGORITHMS as SETTING
from oncekey.core.errors import ConfigurationError
from oncekey.edge.identity.jwk import (
    ALGORITHMS,
    check_algorithms,
    ring_of_jwks,
    ring_of_pem,
    ring_of_secret,
)
from tests.fixtures.tokens import SECRET, curve, jwks_of, pem_of, rsa, secret_key


def entry(**others: Any) -> dict[str, Any]:
    return {**rsa().as_dict(private=False), **others}


def ring_of(*entries: Any, **options: Any) -> Any:
    return ring_of_jwks(json.dumps({"keys": entries}).encode(), **options)


def test_keys_are_found_by_name_and_algorithm() -> None:
    ring = ring_of_jwks(jwks_of(rsa(), rsa("second"), curve()))

    assert [key.kid for key in ring.find("second", "RS256")] == ["second"]
    assert [key.kid for key in ring.find(None, "PS512")] == ["first", "second"]
    assert [key.kid for key in ring.find(None, "ES256")] == ["P-256"]
    assert ring.find("P-256", "RS256") == ring.find("second", "HS256") == []
    assert ring.find(None, "none") == []
    assert (ring.knows("first"), ring.knows("third"), ring.knows(None)) == (True, False, True)


def test_what_a_jwks_says_of_a_key_holds() -> None:
    assert ring_of(entry(alg="RS256")).keys[0].algorithms == {"RS256"}
    for unusable in (
        entry(use="enc"),
        entry(alg="RSA-OAEP"),
        entry(alg="HS256"),
        entry(alg="none"),
        entry(alg=7),
        entry(key_ops=["encrypt"]),
        entry(key_ops="verify"),
        entry(kid=7),
        entry(kty="EC"),
        entry(kty="AKP"),
        entry(kty=None),
        entry(kty=["RSA"]),
        entry(n=""),
        entry(n=7),
        entry(e="AQ"),
        {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
        {"kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA"},
        OKPKey.generate_key("X25519").as_dict(private=False),
        native_rsa_entry(1024),
        "key",
        None,
    ):
        ring = ring_of(unusable, curve().as_dict(private=False))
        assert [key.kid for key in ring.keys] == ["P-256"]


def native_rsa_entry(bits: int) -> dict[str, Any]:
    numbers = native_rsa.generate_private_key(65537, bits).public_key().public_numbers()
    raw = numbers.n.to_bytes(bits // 8, "big")
    return {"kty": "RSA", "e": "AQAB", "n": _base64url(raw)}


def _base64url(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode()


def test_a_secret_that_is_published_is_none() -> None:
    shared = {"kty": "oct", "kid": "shared", "k": _base64url(SECRET.encode())}

    assert ring_of(shared).keys == ()
    assert [key.kid for key in ring_of(shared, secrets=True).keys] == ["shared"]
    assert ring_of({**shared, "k": _base64url(b"x" * 31)}, secrets=True).keys == ()
    assert ring_of({**shared, "k": _base64url(pem_of(rsa()).encode())}, secrets=True).keys == ()


@pytest.mark.parametrize(
    "document",
    [b"", b"{}", b"[]", b"<html>", b'{"keys":{}}', b'{"keys":null}', b'{"keys":[],"keys":[]}',
     b'{"keys":[' + b"[" * 5000, b"\xff\xfe", json.dumps({"keys": [{}] * 65}).encode()],
    ids=lambda document: repr(document[:20]),
)  # fmt: skip
def test_what_is_no_jwks(document: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - its message is for the log
        ring_of_jwks(document)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
names = st.sampled_from(["kty", "n", "e", "crv", "x", "y", "k", "kid", "alg", "use", "key_ops"])
likely = st.sampled_from(
    [
        "RSA",
        "EC",
        "OKP",
        "oct",
        "P-256",
        "Ed25519",
        "X448",
        "AQAB",
        "AA",
        "",
        "====",
        "sig",
        "RS256",
    ]
)


@given(st.lists(st.dictionaries(names, likely | json_values), max_size=4))
def test_nothing_in_a_jwks_keeps_its_other_keys_from_use(entries: list[dict[str, Any]]) -> None:
    ring = ring_of(*entries, curve().as_dict(private=False))

    assert "P-256" in [key.kid for key in ring.keys]


def test_rings_are_equal_when_they_verify_the_same() -> None:
    ring = ring_of(entry(), curve().as_dict(private=False))

    assert ring == ring_of(curve().as_dict(private=False), entry(x5t="ignored"))
    for other in (ring_of(entry()), ring_of(entry(kid="renamed")), ring_of(entry(alg="RS256"))):
        assert ring != other
        assert hash(ring) != hash(other)


# -- one key ---------------------------------------------------------------------------------


def test_a_certificate_brings_its_public_key() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "issuer")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 7, now, now + timedelta(days=1))
        .sign(key, SHA256())
        .public_bytes(Encoding.PEM)
    )

    assert ring_of_pem(certificate.decode()).keys[0].algorithms == {"ES256"}


def test_a_pem_that_is_no_public_key_of_a_known_kind() -> None:
    info = PublicFormat.SubjectPublicKeyInfo
    for native in (
        native_rsa.generate_private_key(65537, 1024).public_key(),
        x25519.X25519PrivateKey.generate().public_key(),
        ec.generate_private_key(ec.SECP256K1()).public_key(),
    ):
        pem = native.public_bytes(Encoding.PEM, info).decode()
        with pytest.raises(ConfigurationError, match=r"auth\.jwt\.public_key cannot be used"):
            ring_of_pem(pem)
    for text in ("", "key", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"):
        with pytest.raises(ConfigurationError, match=r"auth\.jwt\.public_key"):
            ring_of_pem(text)
    with pytest.raises(ConfigurationError, match="private key"):
        ring_of_pem(rsa().as_pem(private=True).decode())


def test_a_secret_is_long_enough_and_not_a_public_key() -> None:
    with pytest.raises(ConfigurationError, match="has 31 bytes"):
        ring_of_secret("x" * 31)
    for text in (pem_of(rsa()), "-----BEGIN PUBLIC KEY----- broken", "ssh-ed25519 AAAA" * 3):
        with pytest.raises(ConfigurationError, match="not a secret") as caught:
            ring_of_secret(text)
        assert text not in str(caught.value)


@pytest.mark.parametrize(
    "size, names",
    [(32, {"HS256"}), (47, {"HS256"}), (48, {"HS256", "HS384"}), (64, {"HS256", "HS384", "HS512"})],
)
def test_a_secret_fits_what_is_no_longer_than_itself(size: int, names: set[str]) -> None:
    assert ring_of_secret("x" * size).keys[0].algorithms == names
    shared = {"kty": "oct", "k": _base64url(b"x" * size)}
    assert ring_of(shared, secrets=True).keys[0].algorithms == names


def test_no_key_is_shown() -> None:
    ring = ring_of_secret(SECRET)

    assert SECRET not in repr(ring.keys)
    assert str(secret_key().as_dict()["k"]) not in repr(ring.keys)


# -- algorithms ------------------------------------------------------------------------------


def test_every_algorithm_that_can_be_set_is_known_here() -> None:
    assert check_algorithms(SETTING) == ALGORITHMS


def test_both_names_of_edwards_curves_are_meant_by_the_old_one() -> None:
    assert check_algorithms(["EdDSA"]) == {"EdDSA", "Ed25519", "Ed448"}


@pytest.mark.parametrize("name", ["none", "None", "RS1", "ES256K", "", "hs256"])
def test_an_algorithm_that_is_none_of_them(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"auth\.jwt\.algorithms"):
        check_algorithms([name])


def test_pinned_algorithms_that_do_not_fit_the_key() -> None:
    with pytest.raises(ConfigurationError, match="none of them fits"):
        ring_of_secret(SECRET, frozenset({"RS256"}))
    with pytest.raises(ConfigurationError, match="none of them fits"):
        ring_of_pem(pem_of(rsa()), frozenset({"HS256"}))
