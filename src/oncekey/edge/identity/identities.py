"""Who is calling, at the edge: a token, an API key, or what a trusted gateway says. One credential
decides; two that differ are none."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from oncekey.core.api_keys import PREFIXES
from oncekey.core.clock import Clock, SystemClock
from oncekey.core.errors import Unauthorized
from oncekey.edge.identity.gateway import Gateway
from oncekey.edge.identity.known import Known, Verifier
from oncekey.edge.identity.memory import Memory

__all__ = ["Credential", "Identities", "Known", "credential_in"]

Headers = Sequence[tuple[bytes, bytes]]

REMEMBERED = 8192
_AUTHORIZATION, _API_KEY = b"authorization", b"x-api-key"
_CREDENTIALS = frozenset({_AUTHORIZATION, _API_KEY})
_LOCAL = tuple(PREFIXES.values())
_LONGEST = 32 << 10


class Credential(NamedTuple):
    secret: str
    is_bearer: bool

    @property
    def is_local(self) -> bool:
        """An API key of OnceKey's own."""
        return self.secret.startswith(_LOCAL)

    @property
    def is_token(self) -> bool:
        """Three parts are a JWT; five would be an encrypted one, which is refused like one."""
        return self.secret.count(".") >= 2


class Identities:
    """`jwt` verifies tokens, `api_keys` OnceKey's own keys, `unkey` all other keys."""

    def __init__(
        self,
        *,
        jwt: Verifier | None = None,
        api_keys: Verifier | None = None,
        unkey: Verifier | None = None,
        gateway: Gateway | None = None,
        clock: Clock | None = None,
        remembered: int = REMEMBERED,
    ) -> None:
        self._jwt, self._api_keys, self._unkey = jwt, api_keys, unkey
        self._verifiers = [verifier for verifier in (jwt, api_keys, unkey) if verifier is not None]
        self.gateway = gateway
        self._memory = Memory(clock or SystemClock(), remembered)

    def recall(self, headers: Headers, peer: str) -> Known | None:
        """From memory alone, for names of headers in lower case. None: ask `identify`."""
        if self.gateway is not None and self.gateway.trusts(peer):
            try:
                known = self.gateway.known_in(headers)
            except Unauthorized:
                return None
            if known is not None:
                return known
        credential = digest_of(headers)
        return self._memory.recall(credential) if credential else None

    def credential(self, headers: Headers, peer: str) -> bytes:
        """What alone says who calls, for `recall_by`; empty for no such thing."""
        if self.gateway is not None and self.gateway.trusts(peer):
            return b""
        return digest_of(headers)

    def recall_by(self, credential: bytes) -> Known | None:
        """As `recall`, for another request with the same credential from the same peer."""
        return self._memory.recall(credential)

    async def identify(self, headers: Headers, peer: str) -> Known | None:
        """None when nobody says who calls. Raises `Unauthorized`, `IdentityUnavailable`."""
        if self.gateway is not None and self.gateway.trusts(peer):
            known = self.gateway.known_in(headers)
            if known is not None:
                return known
        credential = digest_of(headers)
        if not credential or not (self._verifiers or self.gateway):
            return None
        verifier, secret = self._verifier_of(headers)
        epoch = self._memory.epoch
        verified = await verifier.verify(secret)
        self._memory.put(credential, verified, verifier, epoch)
        return verified.known

    def forget(self) -> None:
        """Every credential is verified again before it is believed again."""
        self._memory.forget()

    async def close(self) -> None:
        self.forget()
        for verifier in self._verifiers:
            await verifier.close()

    def _verifier_of(self, headers: Headers) -> tuple[Verifier, str]:
        credential = credential_in(headers)
        if credential.is_local:
            verifier = self._api_keys
        elif credential.is_token:
            verifier = self._jwt if credential.is_bearer else None
        else:
            verifier = self._unkey
        if verifier is None:
            raise Unauthorized("there is nothing that verifies credentials of this kind")
        return verifier, credential.secret


def credential_in(headers: Headers) -> Credential:
    """The one credential of a request that has some. Raises `Unauthorized`."""
    given = [(name, value) for name, value in headers if name in _CREDENTIALS]
    if len({name for name, _ in given}) != len(given):
        raise Unauthorized("there are two lines of the same credential; send one")
    secrets = {_secret_of(name, value) for name, value in given}
    if len(secrets) != 1:
        raise Unauthorized("Authorization and X-API-Key differ; send one of them")
    return Credential(secrets.pop(), any(name == _AUTHORIZATION for name, _ in given))


def _secret_of(name: bytes, value: bytes) -> str:
    if len(value) > _LONGEST:
        raise Unauthorized(f"the credential is longer than {_LONGEST} bytes")
    secret = value.strip()
    if name == _AUTHORIZATION:
        scheme, _, secret = secret.partition(b" ")
        secret = secret.strip()
        if scheme.lower() != b"bearer":
            raise Unauthorized("Authorization is of another scheme than Bearer")
    try:
        text = secret.decode("ascii")
    except UnicodeDecodeError:
        text = ""
    if not text or not text.isprintable() or " " in text:
        raise Unauthorized("the credential is empty, or has characters that none has")
    return text


def digest_of(headers: Headers) -> bytes:
    """Of what carries credentials, as it came; empty for nothing."""
    lines = b""
    for name, value in headers:
        if name in _CREDENTIALS:
            # No value has a line break in it, so that no two requests look alike here.
            lines += name + b":" + value + b"\n"
    return sha256(lines).digest() if lines else b""
