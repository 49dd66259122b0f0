"""Who may read the metrics. An outage of the store is when they are wanted most, and nobody can be
looked up then: whoever was an admin a while ago is still let in."""

from __future__ import annotations

import time
from collections.abc import Callable

from oncekey.core.api_keys import digest_of
from oncekey.core.callers import Callers
from oncekey.core.errors import StoreError
from oncekey.core.model import Headers
from oncekey.wire.credentials import secret_in

_TRUSTED_FOR = 3600.0
_MOST = 16


class Readers:
    def __init__(self, callers: Callers, steady: Callable[[], float] = time.monotonic) -> None:
        self._callers = callers
        self._steady = steady
        self._seen: dict[bytes, float] = {}

    async def admit(self, headers: Headers) -> bool:
        """Raises `StoreError` where that cannot be known."""
        secret = secret_in(headers)
        digest = None if secret is None else digest_of(secret, "admin")
        if digest is None:
            return False
        try:
            known = await self._callers.identify_digest(digest, "admin") is not None
        except StoreError:
            if self._steady() - self._seen.get(digest, float("-inf")) < _TRUSTED_FOR:
                return True
            raise
        self._note(digest, known)
        return known

    def _note(self, digest: bytes, known: bool) -> None:
        self._seen.pop(digest, None)
        if known:
            self._seen[digest] = self._steady()
            while len(self._seen) > _MOST:
                self._seen.pop(next(iter(self._seen)))
