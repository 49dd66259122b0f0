"""Bearer tokens: signed, in time, for us. Nothing inside one is believed before its signature is,
and nothing in its header says where a key may come from."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from joserfc.util import urlsafe_b64decode

from oncekey.core.clock import Clock
from oncekey.core.errors import Unauthorized
from oncekey.edge.identity.claims import ClaimRules
from oncekey.edge.identity.jwks import Keys
from oncekey.edge.identity.known import Verified
from oncekey.wire.strict_json import object_in

MAX_TOKEN = 16 << 10
REMEMBERED = 60.0

_MAX_KID = 512
_TOKEN = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)").fullmatch
# Other types of tokens mean other things than "this is who calls".
_TYPES = frozenset({"jwt", "at+jwt"})
# They change how the rest is read. A token that needs them is not for us.
_CHANGING = ("crit", "b64", "cty", "zip", "enc")


class _Signed(NamedTuple):
    algorithm: str
    kid: str | None
    message: bytes
    payload: str
    signature: bytes


class JwtVerifier:
    """`remembered`: how long a verified token is believed without looking at it again, in seconds;
    never longer than the token itself is good for."""

    def __init__(
        self, keys: Keys, rules: ClaimRules, clock: Clock, *, remembered: float = REMEMBERED
    ) -> None:
        self._keys = keys
        self._rules = rules
        self._clock = clock
        self._remembered = int(remembered * 1000)

    @property
    def generation(self) -> int:
        return self._keys.generation

    async def verify(self, secret: str) -> Verified:
        signed = _signed_in(secret)
        keys = await self._keys.find(signed.kid, signed.algorithm)
        if not keys:
            raise Unauthorized(f"no key fits a token of algorithm {signed.algorithm} and its kid")
        if not any(
            key.verifies(signed.algorithm, signed.message, signed.signature) for key in keys
        ):
            raise Unauthorized("the token is not signed by its issuer")
        claims = _object_in(signed.payload, "payload")
        now = self._clock.now()
        expires_at = self._rules.expiry_in(claims, now / 1000) * 1000
        known = self._rules.known_in(claims)
        until = self._clock.steady() + self._remembered
        return Verified(known, until, expires_at, self._keys.generation)

    async def close(self) -> None:
        await self._keys.close()


def _signed_in(token: str) -> _Signed:
    if len(token) > MAX_TOKEN:
        raise Unauthorized(f"the token is longer than {MAX_TOKEN} characters")
    parts = _TOKEN(token)
    if parts is None:
        raise Unauthorized("the token is not of three parts in base64url")
    head, payload, signature = parts.groups()
    header = _object_in(head, "header")
    algorithm, kid, kind = header.get("alg"), header.get("kid"), header.get("typ", "JWT")
    if not isinstance(algorithm, str) or not algorithm.isalnum() or len(algorithm) > 16:
        raise Unauthorized("the token names no algorithm")
    if kid is not None and not (isinstance(kid, str) and len(kid) <= _MAX_KID):
        raise Unauthorized("the kid of the token is no name")
    if not isinstance(kind, str) or kind.lower().removeprefix("application/") not in _TYPES:
        raise Unauthorized("the token is of another type than JWT")
    for name in _CHANGING:
        if name in header:
            raise Unauthorized(f"the token has {name!r} in its header, which is not supported")
    message = f"{head}.{payload}".encode("ascii")
    return _Signed(algorithm, kid, message, payload, _bytes_in(signature, "signature"))


def _object_in(part: str, name: str) -> dict[str, Any]:
    try:
        return object_in(_bytes_in(part, name))
    except ValueError:
        raise Unauthorized(f"the {name} of the token is no JSON object") from None


def _bytes_in(part: str, name: str) -> bytes:
    try:
        return urlsafe_b64decode(part.encode("ascii"))
    except ValueError:
        raise Unauthorized(f"the {name} of the token is no base64url") from None
