"""Sessions of admins in a browser. One is a record of the ledger under the digest of its token: it
expires, is swept and is purged as every key is, and what is stored opens nothing."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from hashlib import blake2b, sha256
from typing import NamedTuple

from oncekey.core.api_keys import digest_of
from oncekey.core.callers import Caller, Callers
from oncekey.core.ledger import Ledger
from oncekey.core.model import Kind, Operation, Outcome, Ref
from oncekey.core.ports import Found, Held, Insert, Peek, Purge, Settle
from oncekey.core.scope import PLATFORM_LEVEL, Scope, namespace_of
from oncekey.core.steps import Steps

LIFE = 12 * 3600.0

# No caller is of this subject: no key of anybody's can be taken for a session.
_SCOPE = Scope(namespace_of("default", PLATFORM_LEVEL, "service:console"), "console session")
_LONGEST_TOKEN = 64


class Session(NamedTuple):
    """Somebody who has signed in."""

    token: str
    caller: Caller

    @property
    def proof(self) -> str:
        """What only a page of this session can know; forms send it back."""
        return blake2b(b"form", key=self.token.encode(), digest_size=16).hexdigest()


class Sessions:
    """`life` is in seconds. A session ends with the API key it was opened with."""

    def __init__(
        self,
        ledger: Ledger,
        callers: Callers,
        *,
        life: float = LIFE,
        randtext: Callable[[int], str] = secrets.token_urlsafe,
    ) -> None:
        self._ledger = ledger
        self._callers = callers
        self._life = int(life * 1000)
        self._randtext = randtext

    async def open(self, secret: str) -> Session | None:
        """None for what is not the secret of an admin's key."""
        caller, digest = await self._callers.identify_admin(secret), digest_of(secret, "admin")
        if caller is None or digest is None:
            return None
        token = self._randtext(32)
        await self._ledger.arun(self._keep(token, digest))
        return Session(token, caller)

    async def find(self, token: str) -> Session | None:
        if not 0 < len(token) <= _LONGEST_TOKEN or not token.isascii():
            return None
        digest = await self._ledger.arun(self._digest_in(token))
        if digest is None:
            return None
        caller = await self._callers.identify_digest(digest, "admin")
        return None if caller is None else Session(token, caller)

    async def close(self, token: str) -> None:
        await self._ledger.arun(_forget(token))

    # -- what is asked of the store ------------------------------------------------------

    def _keep(self, token: str, digest: bytes) -> Steps[None]:
        now, number = self._ledger.clock.now(), self._ledger.draw()
        ref, until = _ref_of(token), now + self._life
        held: Held = yield Insert(number, ref.digest, Operation(ref), now, until)
        body = json.dumps({"api_key": digest.hex()}).encode()
        yield Settle(number, held.fence, Outcome(Kind.VALUE, body=body), now, until)

    def _digest_in(self, token: str) -> Steps[bytes | None]:
        found: Found | None = yield Peek(_ref_of(token).digest)
        record = None if found is None else found.record
        if record is None or record.outcome is None:
            return None
        if record.expires_at <= self._ledger.clock.now():
            return None
        return bytes.fromhex(json.loads(record.outcome.body)["api_key"])


def _forget(token: str) -> Steps[None]:
    yield Purge(_ref_of(token).digest)


def _ref_of(token: str) -> Ref:
    return Ref(_SCOPE, sha256(token.encode()).hexdigest())
