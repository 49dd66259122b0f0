"""Signatures that are verified with a public key. The only place here that needs `cryptography`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oncekey.core.errors import InvalidInput
from oncekey.webhooks import signing

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

_SEED = 32
_BITS = 2048


def ed25519_verifies(public: bytes, text: bytes, signature: str) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key = Ed25519PublicKey.from_public_bytes(public)
        key.verify(signing.signature_of_base64(signature) or b"", text)
    except (InvalidSignature, ValueError):
        return False
    return True


def ed25519_public_of(private: bytes) -> bytes | None:
    """`private` is the seed, or the seed and the public key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    if len(private) not in {_SEED, 2 * _SEED}:
        return None
    return Ed25519PrivateKey.from_private_bytes(private[:_SEED]).public_key().public_bytes_raw()


def ed25519_sign(private: bytes, text: bytes) -> str:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    if len(private) not in {_SEED, 2 * _SEED}:
        raise InvalidInput(f"a private key of Ed25519 has {_SEED} or {2 * _SEED} bytes")
    return signing.as_base64(Ed25519PrivateKey.from_private_bytes(private[:_SEED]).sign(text))


def rsa_verifies(pem: str, text: bytes, signature: str) -> bool:
    """`pem` is a certificate, a public key or a private one. SHA-256, PKCS #1 v1.5."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.hashes import SHA256

    key = _public_key_in(pem)
    given = signing.signature_of_base64(signature)
    if key is None or given is None:
        return False
    try:
        key.verify(given, text, PKCS1v15(), SHA256())
    except InvalidSignature:
        return False
    return True


def rsa_sign(pem: str, text: bytes) -> str:
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.hashes import SHA256

    key = _private_key_in(pem)
    if key is None:
        raise InvalidInput("only a private key of RSA can sign; a certificate verifies")
    return signing.as_base64(key.sign(text, PKCS1v15(), SHA256()))


def new_rsa_key() -> str:
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    key = rsa.generate_private_key(public_exponent=65537, key_size=_BITS)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _private_key_in(pem: str) -> RSAPrivateKey | None:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    if "PRIVATE KEY" not in pem:
        return None
    try:
        # Whoever has the key made it: a wrong one signs what nobody verifies, and tells nothing.
        key = load_pem_private_key(signing.octets(pem), None, unsafe_skip_rsa_key_validation=True)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, RSAPrivateKey) else None


def _public_key_in(pem: str) -> RSAPublicKey | None:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
    from cryptography.x509 import load_pem_x509_certificate

    private = _private_key_in(pem)
    if private is not None:
        return private.public_key()
    try:
        if "BEGIN CERTIFICATE" in pem:
            key: object = load_pem_x509_certificate(signing.octets(pem)).public_key()
        else:
            key = load_pem_public_key(signing.octets(pem))
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, RSAPublicKey) and key.key_size >= _BITS else None
