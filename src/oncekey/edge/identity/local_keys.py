"""OnceKey's own API keys as credentials at the edge: those of callers, and those of admins."""

from __future__ import annotations

from oncekey.core.api_keys import PREFIXES, Role
from oncekey.core.callers import Callers
from oncekey.core.errors import Unauthorized
from oncekey.edge.identity.known import Verified, believed


class LocalKeys:
    def __init__(self, callers: Callers) -> None:
        self._callers = callers

    @property
    def generation(self) -> int:
        return self._callers.revocations

    async def verify(self, secret: str) -> Verified:
        """Believed for as long as `Callers` does; its role says what it is good for."""
        role: Role = "admin" if secret.startswith(PREFIXES["admin"]) else "caller"
        found = await self._callers.believe(secret, role)
        if found is None:
            raise Unauthorized("the API key is unknown, expired or revoked")
        key = found.key
        known = believed(key.tenant, key.project, key.subject, key.role)
        return Verified(known, found.until, key.expires_at, found.revocations)

    async def close(self) -> None:
        """Nothing is open."""
