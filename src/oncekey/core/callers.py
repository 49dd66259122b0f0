"""Who is calling: API keys are made, found, listed and revoked here.

A key that was found is believed for `cache_seconds` without asking again. Its expiry is exact all
the same; a revocation is seen at once by the process that made it, and after that time by others.
"""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from oncekey.core.api_keys import (
    PREFIXES,
    ApiKey,
    FindApiKey,
    KeepApiKey,
    ListApiKeys,
    RevokeApiKey,
    Role,
    check_label,
    check_life,
    digest_of,
    new_id,
)
from oncekey.core.errors import ScopeInvalid
from oncekey.core.ledger import Ledger
from oncekey.core.scope import TENANT_LEVEL, namespace_of
from oncekey.core.steps import Steps

CACHE_SECONDS = 2.0
_SECRET_BYTES = 32


class Caller(NamedTuple):
    tenant: str
    project: str
    subject: str
    key_id: str
    role: Role = "caller"

    @property
    def namespace(self) -> str:
        return namespace_of(self.tenant, self.project, self.subject)


class Believed(NamedTuple):
    key: ApiKey
    until: int
    """By the steady clock."""
    revocations: int
    """How many there were when the store was asked: after another one, it must be asked again."""


class Callers:
    def __init__(
        self,
        ledger: Ledger,
        *,
        cache_seconds: float = CACHE_SECONDS,
        cache_size: int = 4096,
        randbytes: Callable[[int], bytes] = secrets.token_bytes,
        randbits: Callable[[int], int] = secrets.randbits,
    ) -> None:
        self._ledger = ledger
        self._clock = ledger.clock
        self._cache_milliseconds = int(cache_seconds * 1000)
        self._cache_size = cache_size
        self._randbytes = randbytes
        self._randbits = randbits
        self._believed: OrderedDict[bytes, Believed] = OrderedDict()
        self.revocations = 0

    async def identify(self, secret: str) -> Caller | None:
        """None for a secret that is unknown, expired, revoked or an admin's: nobody is told
        which."""
        return await self._identify(secret, "caller")

    async def identify_admin(self, secret: str) -> Caller | None:
        """The same for admins, whose keys are good for nothing else."""
        return await self._identify(secret, "admin")

    async def identify_digest(self, digest: bytes, role: Role) -> Caller | None:
        """The same for whoever proved itself with a secret before."""
        return _caller_of(await self._believe(digest, role))

    async def believe(self, secret: str, role: Role = "caller") -> Believed | None:
        """The key of that secret, for those who remember it themselves; None as for `identify`."""
        digest = digest_of(secret, role)
        return None if digest is None else await self._believe(digest, role)

    async def _believe(self, digest: bytes, role: Role) -> Believed | None:
        believed = self._recall(digest) or await self._ledger.arun(self._find(digest))
        if believed is None or believed.key.role != role:
            return None
        return believed if believed.key.is_good(self._clock.now()) else None

    async def create(
        self,
        tenant: str,
        *,
        project: str = TENANT_LEVEL,
        subject: str | None = None,
        label: str = "",
        expires_in: float | None = None,
        role: Role = "caller",
    ) -> tuple[ApiKey, str]:
        """A key and its secret, which is told here and never again.

        Without a `subject` the key is a service of its own: `service:` and its id. Raises
        `ScopeInvalid`, `InvalidInput`.
        """
        check_label(label)
        life = None if expires_in is None else check_life(expires_in)
        namespace_of(tenant, project, subject or "service:new")
        if subject is not None and not subject.isprintable():
            raise ScopeInvalid("the subject has characters that cannot be printed")
        while True:
            key = self._new(tenant, project, subject, label, life, role)
            secret = PREFIXES[role] + _text_of(self._randbytes(_SECRET_BYTES))
            if await self._ledger.arun(_keep(key, secret)):
                return key, secret

    async def list(
        self, tenant: str | None = None, *, before: str | None = None, limit: int = 100
    ) -> list[ApiKey]:
        """Newest first, with those that are expired or revoked."""
        return await self._ledger.arun(_list(ListApiKeys(tenant, before, limit)))

    async def revoke(self, id: str) -> ApiKey | None:  # noqa: A002 - the word of the command
        """The key as it is from now on; None when there is none of that id."""
        key = await self._ledger.arun(_revoke(RevokeApiKey(id, self._clock.now())))
        self.revocations += 1
        for digest, believed in list(self._believed.items()):
            if believed.key.id == id:
                del self._believed[digest]
        return key

    # -- the steps behind the verbs ------------------------------------------------------

    async def _identify(self, secret: str, role: Role) -> Caller | None:
        return _caller_of(await self.believe(secret, role))

    def _new(
        self,
        tenant: str,
        project: str,
        subject: str | None,
        label: str,
        life: float | None,
        role: Role,
    ) -> ApiKey:
        now = self._clock.now()
        number = new_id(now, self._randbits)
        expires_at = None if life is None else now + max(1, round(life * 1000))
        named = subject or f"service:{number}"
        return ApiKey(number, tenant, project, named, label, now, expires_at, role=role)

    def _recall(self, digest: bytes) -> Believed | None:
        believed = self._believed.get(digest)
        if believed is None or believed.until <= self._clock.steady():
            return None
        return believed

    def _find(self, digest: bytes) -> Steps[Believed | None]:
        """Only keys that exist are remembered: nobody fills the cache with what he makes up."""
        asked_at, revocations = self._clock.steady(), self.revocations
        key: ApiKey | None = yield FindApiKey(digest)
        if key is None:
            return None
        believed = Believed(key, asked_at + self._cache_milliseconds, revocations)
        # An answer that was under way while a key was revoked may be older than that.
        if revocations == self.revocations:
            self._believed[digest] = believed
            self._believed.move_to_end(digest)
            while len(self._believed) > self._cache_size:
                self._believed.popitem(last=False)
        return believed


def _caller_of(believed: Believed | None) -> Caller | None:
    if believed is None:
        return None
    key = believed.key
    return Caller(key.tenant, key.project, key.subject, key.id, key.role)


def _text_of(random: bytes) -> str:
    return urlsafe_b64encode(random).rstrip(b"=").decode()


def _keep(key: ApiKey, secret: str) -> Steps[bool]:
    digest = digest_of(secret, key.role)
    assert digest is not None
    kept: bool = yield KeepApiKey(key, digest)
    return kept


def _list(query: ListApiKeys) -> Steps[list[ApiKey]]:
    found: list[ApiKey] = yield query
    return found


def _revoke(request: RevokeApiKey) -> Steps[ApiKey | None]:
    key: ApiKey | None = yield request
    return key
