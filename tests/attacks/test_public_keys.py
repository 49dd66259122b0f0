"""Tokens for an edge that has a public key only, which everybody has: none is signed with that."""

import hashlib
import hmac
import json
import time
from typing import Any

import pytest
from joserfc.util import urlsafe_b64encode

from tests.fixtures.stronghold import ISSUER, Stronghold, head
from tests.fixtures.tokens import curve, part, pem_of, rsa, signed

PEM = pem_of(rsa())
STRONGHOLD = {"jwt": f"public_key = '''\n{PEM}'''"}
JWK = rsa("theirs").as_dict(private=False)


def claims(**others: Any) -> dict[str, Any]:
    now = int(time.time())
    return {"sub": "user:alice", "tenant_id": "acme", "aud": "edge", "iss": ISSUER, "iat": now,
            "exp": now + 300, **others}  # fmt: skip


def hashed(secret: bytes, algorithm: str = "HS256") -> str:
    """As if the public key were a secret."""
    digest = {"HS256": hashlib.sha256, "HS384": hashlib.sha384, "HS512": hashlib.sha512}[algorithm]
    message = f"{part({'alg': algorithm, 'typ': 'JWT'})}.{part(claims())}"
    mac = hmac.new(secret, message.encode(), digest).digest()
    return f"{message}.{urlsafe_b64encode(mac).decode()}"


def theirs(**header: Any) -> str:
    """Well signed, with a key of the attacker's own."""
    return signed(rsa("theirs"), claims(), {"alg": "RS256", **header})


BAD = {
    "the public key as a secret": lambda: hashed(PEM.encode()),
    "the public key without its last line break": lambda: hashed(PEM.strip().encode()),
    "the public key after a line break": lambda: hashed(b"\n" + PEM.encode()),
    "the public key with other line breaks": lambda: hashed(PEM.replace("\n", "\r\n").encode()),
    "what is between its lines": lambda: hashed("".join(PEM.splitlines()[1:-1]).encode()),
    "its bytes": lambda: hashed(rsa().as_der(private=False)),
    "its number": lambda: hashed(rsa().as_dict(private=False)["n"].encode()),
    "its JWK": lambda: hashed(json.dumps(rsa().as_dict(private=False)).encode()),
    "the public key as a longer secret": lambda: hashed(PEM.encode(), "HS512"),
    "the public key as a secret of middle length": lambda: hashed(PEM.encode(), "HS384"),
    "no secret": lambda: hashed(b""),
    "another key": theirs,
    "another key, of the same name": lambda: theirs(kid="first"),
    "another key, brought along": lambda: theirs(jwk=JWK),
    "another key, at an address": lambda: theirs(jku="http://127.0.0.1:1/jwks.json"),
    "another key, in a certificate": lambda: theirs(x5c=["AAAA"]),
    "another kind of key": lambda: signed(curve(), claims(), {"alg": "ES256"}, algorithm="ES256"),
    "another kind of key that is called as ours": lambda: signed(
        curve(), claims(), {"alg": "RS256"}, algorithm="ES256"
    ),
    "no algorithm": lambda: f"{part({'alg': 'none'})}.{part(claims())}.",
    "an empty signature": lambda: f"{part({'alg': 'RS256'})}.{part(claims())}.",
    "a signature of zeros": lambda: f"{part({'alg': 'RS256'})}.{part(claims())}.{part(bytes(256))}",
    "a short signature": lambda: signed(rsa(), claims())[:-40],
}


def status_of(fort: Stronghold, token: str) -> int:
    with fort.wire(head("/api/v1/notes", credentials=token)) as wire:
        return wire.answer().status


def test_the_good_one_is_good(fort: Stronghold) -> None:
    """What the others are measured by; a header may say what it likes about keys."""
    assert status_of(fort, signed(rsa(), claims())) == 201
    boasting = {"alg": "RS256", "jwk": JWK, "jku": "http://127.0.0.1:1", "kid": "../x"}
    assert status_of(fort, signed(rsa(), claims(), boasting)) == 201
    assert len(fort.effects) == 2


@pytest.mark.parametrize("name", BAD)
def test_whoever_has_the_public_key_only_gets_in_nowhere(fort: Stronghold, name: str) -> None:
    assert status_of(fort, BAD[name]()) == 401
    assert fort.effects == []
