"""The room of API keys: a row for each digest, by which a key is found, and one for each id."""

from __future__ import annotations

from typing import Any

from oncekey.core.api_keys import ApiKey, FindApiKey, KeepApiKey, ListApiKeys, RevokeApiKey
from oncekey.stores.memory.api_keys import MemoryApiKeys
from oncekey.stores.restate.columns import column, is_same
from oncekey.stores.restate.link import Link, text
from oncekey.stores.restate.row import Answers, Room, Rows, Table, held, peek_held

_ID, _TENANT = 1, 2


def _of_one_digest(kept: dict[Any, Any]) -> Answers:
    """A key that is there has the digest, whatever its id."""
    oracle = MemoryApiKeys(kept)

    def keep(request: KeepApiKey) -> bool:
        return not kept and bool(oracle.answers()[KeepApiKey](request))

    return {**oracle.answers(), KeepApiKey: keep}


API_KEYS = Table(
    "api-key",
    _of_one_digest,
    changes=(KeepApiKey, RevokeApiKey),
    id_of=lambda key: key.id,
    columns=lambda key: (key.id, key.tenant),
)


class ApiKeys:
    def __init__(self, link: Link) -> None:
        self._link = link
        self._rows = Rows(link, API_KEYS)

    def answers(self) -> Room:
        return {
            KeepApiKey: self._keep,
            FindApiKey: lambda find: self._rows.read(find.digest.hex()),
            ListApiKeys: self._list,
            RevokeApiKey: self._revoke,
        }

    async def _keep(self, keep: KeepApiKey) -> bool:
        # An id that was given stays so, also when its digest turns out to be another's.
        digest = keep.digest.hex()
        if await held(self._link, _name(keep.key.id), digest) != digest:
            return False
        kept: bool = await self._rows.ask(digest, keep)
        return kept

    async def _revoke(self, revoke: RevokeApiKey) -> ApiKey | None:
        digest = await peek_held(self._link, _name(revoke.id))
        if digest is None:
            return None
        key: ApiKey | None = await self._rows.ask(digest, revoke)
        return key

    async def _list(self, query: ListApiKeys) -> list[ApiKey]:
        conditions = [] if query.tenant is None else [is_same(_TENANT, query.tenant)]
        if query.before is not None:
            conditions.append(f"{column(_ID)} < {text(query.before)}")
        return await self._rows.list(*conditions, limit=query.limit)


def _name(id_: str) -> str:
    return f"api-key-id.{id_}"
