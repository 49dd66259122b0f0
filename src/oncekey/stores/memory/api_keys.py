"""The oracle of API keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oncekey.core.api_keys import ApiKey, FindApiKey, KeepApiKey, ListApiKeys, RevokeApiKey


class MemoryApiKeys:
    def __init__(self, by_id: dict[str, ApiKey] | None = None) -> None:
        self._by_id = {} if by_id is None else by_id
        self._ids: dict[bytes, str] = {}

    def answers(self) -> dict[type, Callable[[Any], Any]]:
        return {
            KeepApiKey: self._keep,
            FindApiKey: self._find,
            ListApiKeys: self._list,
            RevokeApiKey: self._revoke,
        }

    def _keep(self, request: KeepApiKey) -> bool:
        key, digest = request
        if key.id in self._by_id or digest in self._ids:
            return False
        self._by_id[key.id] = key
        self._ids[digest] = key.id
        return True

    def _find(self, request: FindApiKey) -> ApiKey | None:
        number = self._ids.get(request.digest)
        return None if number is None else self._by_id[number]

    def _list(self, request: ListApiKeys) -> list[ApiKey]:
        found = [
            self._by_id[number]
            for number in sorted(self._by_id, reverse=True)
            if (request.before is None or number < request.before)
            and request.tenant in {None, self._by_id[number].tenant}
        ]
        return found[: request.limit]

    def _revoke(self, request: RevokeApiKey) -> ApiKey | None:
        key = self._by_id.get(request.id)
        if key is not None and key.revoked_at is None:
            key = self._by_id[key.id] = key._replace(revoked_at=request.now)
        return key
