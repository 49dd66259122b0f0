"""The keys that tokens are verified with, each with the algorithms that fit it and no others."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from cryptography.x509 import load_pem_x509_certificate
from joserfc.errors import JoseError, SecurityWarning
from joserfc.jwk import ECKey, JWKRegistry, Key, OctKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from oncekey.core.errors import ConfigurationError
from oncekey.wire.strict_json import object_in

# RFC 7518, 3.2: a secret has at least as many bytes as what it makes.
_SECRET = {"HS256": 32, "HS384": 48, "HS512": 64}
_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
# A curve has one algorithm; those of Edwards curves have an old and a new name.
_CURVES = {
    "P-256": ("ES256",),
    "P-384": ("ES384",),
    "P-521": ("ES512",),
    "Ed25519": ("EdDSA", "Ed25519"),
    "Ed448": ("EdDSA", "Ed448"),
}
ALGORITHMS = frozenset({*_SECRET, *_RSA, *(name for each in _CURVES.values() for name in each)})

_EDWARDS = frozenset({"Ed25519", "Ed448"})
_NO_KIND = f"it is neither an RSA key nor on one of the curves {', '.join(_CURVES)}"
_PUBLIC = ("kty", "n", "e", "crv", "x", "y", "k")
_SMALLEST_RSA, _LARGEST_RSA = 2048, 8192
_MOST_KEYS = 64
# Without a kid each key that fits is tried; more would be work for whoever makes tokens up.
_MOST_TRIED = 4
# What the library raises for a key it cannot read, beside its own.
_UNREADABLE = (JoseError, UnsupportedAlgorithm, KeyError, TypeError, ValueError)


class VerifyingKey(NamedTuple):
    kid: str | None
    algorithms: frozenset[str]
    key: Key
    thumbprint: str

    def verifies(self, algorithm: str, message: bytes, signature: bytes) -> bool:
        return JWSRegistry.algorithms[algorithm].verify(message, signature, self.key)


class KeyRing:
    """The keys of one issuer. Two rings are equal when they verify the same."""

    def __init__(self, keys: Iterable[VerifyingKey], *, by_kid: bool = True) -> None:
        self.keys = tuple(keys)
        self._by_kid = by_kid

    def find(self, kid: str | None, algorithm: str) -> list[VerifyingKey]:
        """Those that may have signed it; where there is one key only, its name does not matter."""
        any_kid = kid is None or not self._by_kid
        fitting = [
            key for key in self.keys if (any_kid or key.kid == kid) and algorithm in key.algorithms
        ]
        return fitting[:_MOST_TRIED]

    def knows(self, kid: str | None) -> bool:
        return kid is None or not self._by_kid or any(key.kid == kid for key in self.keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyRing) and self._marks() == other._marks()

    def __hash__(self) -> int:
        return hash(self._marks())

    def _marks(self) -> frozenset[tuple[str | None, frozenset[str], str]]:
        return frozenset([(key.kid, key.algorithms, key.thumbprint) for key in self.keys])


def check_algorithms(names: Collection[str]) -> frozenset[str]:
    for name in names:
        if name not in ALGORITHMS:
            raise ConfigurationError(
                f"auth.jwt.algorithms: {name!r} is not one of {', '.join(sorted(ALGORITHMS))}"
            )
    return frozenset(names) | (_EDWARDS if "EdDSA" in names else frozenset())


def ring_of_secret(secret: str, algorithms: frozenset[str] | None = None) -> KeyRing:
    """One secret that issuer and edge share. Raises `ConfigurationError`, never with the secret."""
    # Any bytes may be a secret, and this is how the environment hands on those that are no text.
    given = secret.encode("utf-8", "surrogateescape")
    if len(given) < _SECRET["HS256"]:
        raise ConfigurationError(
            f"auth.jwt.secret has {len(given)} bytes, and at least {_SECRET['HS256']} are needed; "
            "make one with `openssl rand -base64 32`"
        )
    try:
        with warnings.catch_warnings():
            # Of what only looks like a public key; it is refused as well.
            warnings.simplefilter("error", SecurityWarning)
            key = OctKey.import_key(given)
    except (*_UNREADABLE, SecurityWarning):
        raise ConfigurationError(
            "auth.jwt.secret is a key of two halves, not a secret; give it as auth.jwt.public_key"
        ) from None
    return _ring_of_one(key, _fitting(key), algorithms, "auth.jwt.secret")


def ring_of_pem(pem: str, algorithms: frozenset[str] | None = None) -> KeyRing:
    """One public key, or a certificate of it, as PEM text. Raises `ConfigurationError`."""
    if "PRIVATE KEY" in pem:
        raise ConfigurationError(
            "auth.jwt.public_key is a private key, which only the issuer may have; give its public "
            "half"
        )
    try:
        key = _key_of_pem(pem.encode())
        fitting = _fitting(key)
    except _UNREADABLE as error:
        raise ConfigurationError(f"auth.jwt.public_key cannot be used: {error}") from None
    return _ring_of_one(key, fitting, algorithms, "auth.jwt.public_key")


def ring_of_jwks(
    document: bytes, algorithms: frozenset[str] | None = None, *, secrets: bool = False
) -> KeyRing:
    """The keys of a JWKS that can be used; others are left out, as RFC 7517 asks. Secrets are used
    only when told to: whatever an address gives to everybody is none. Raises `ValueError`."""
    entries = object_in(document).get("keys")
    if not isinstance(entries, list):
        raise ValueError("it has no list 'keys'")  # noqa: TRY004 - of whoever published it
    if len(entries) > _MOST_KEYS:
        raise ValueError(f"it has {len(entries)} keys, more than {_MOST_KEYS}")
    found = [_key_of_entry(each, algorithms) for each in entries]
    return KeyRing([key for key in found if key and (secrets or not isinstance(key.key, OctKey))])


def _ring_of_one(
    key: Key, fitting: Collection[str], pinned: frozenset[str] | None, name: str
) -> KeyRing:
    allowed = frozenset(fitting) if pinned is None else pinned.intersection(fitting)
    if not allowed:
        raise ConfigurationError(
            f"auth.jwt.algorithms: none of them fits {name}; those that do: {', '.join(fitting)}"
        )
    return KeyRing([VerifyingKey(None, allowed, key, key.thumbprint())], by_kid=False)


def _key_of_entry(entry: Any, pinned: frozenset[str] | None) -> VerifyingKey | None:
    if not isinstance(entry, dict) or not _is_for_signatures(entry):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", SecurityWarning)
            key = JWKRegistry.import_key({name: entry[name] for name in _PUBLIC if name in entry})
        allowed = frozenset(_fitting(key))
        mark = key.thumbprint()
    except (*_UNREADABLE, SecurityWarning):
        return None
    if pinned is not None:
        allowed &= pinned
    if "alg" in entry:
        allowed &= {entry["alg"]} if isinstance(entry["alg"], str) else frozenset()
    kid = entry.get("kid")
    if not allowed or not (kid is None or isinstance(kid, str)):
        return None
    return VerifyingKey(kid, allowed, key, mark)


def _is_for_signatures(entry: dict[str, Any]) -> bool:
    operations = entry.get("key_ops", ["verify"])
    return (
        entry.get("use", "sig") == "sig"
        and isinstance(operations, list)
        and ("verify" in operations or "sign" in operations)
    )


def _key_of_pem(pem: bytes) -> Key:
    certified = b"BEGIN CERTIFICATE" in pem
    native = load_pem_x509_certificate(pem).public_key() if certified else load_pem_public_key(pem)
    match native:
        case RSAPublicKey():
            with warnings.catch_warnings():
                # Of a key that is too short; it is refused by its size.
                warnings.simplefilter("ignore", SecurityWarning)
                return RSAKey.import_key(native)
        case EllipticCurvePublicKey():
            return ECKey.import_key(native)
        case Ed25519PublicKey() | Ed448PublicKey():
            return OKPKey.import_key(native)
        case _:
            raise ValueError(_NO_KIND)


def _fitting(key: Key) -> tuple[str, ...]:
    """Raises `ValueError` for a key that nobody should believe."""
    match key:
        case OctKey():
            size = len(key.raw_value)
            return tuple(name for name, shortest in _SECRET.items() if size >= shortest)
        case RSAKey():
            bits = key.raw_value.key_size
            if not _SMALLEST_RSA <= bits <= _LARGEST_RSA:
                raise ValueError(
                    f"an RSA key has {_SMALLEST_RSA} to {_LARGEST_RSA} bits, not {bits}"
                )
            return _RSA
        case _ if key.curve_name in _CURVES:
            return _CURVES[key.curve_name]
        case _:
            raise ValueError(_NO_KIND)
