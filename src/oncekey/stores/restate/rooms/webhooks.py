"""The room of webhooks: a row for each."""

from __future__ import annotations

from oncekey.core.webhooks import (
    ChangeWebhook,
    DropWebhook,
    FindWebhook,
    KeepWebhook,
    ListWebhooks,
    StoredWebhook,
)
from oncekey.stores.memory.webhooks import MemoryWebhooks
from oncekey.stores.restate.columns import column, is_same
from oncekey.stores.restate.link import Link, text
from oncekey.stores.restate.row import Room, Rows, Table

_PLACE, _TENANT = 1, 2


def _place(created_at: int, id_: str) -> str:
    return f"{created_at:016x}{id_}"


WEBHOOKS = Table(
    "webhook",
    lambda kept: MemoryWebhooks(kept).answers(),
    changes=(KeepWebhook, ChangeWebhook, DropWebhook),
    id_of=lambda webhook: webhook.id,
    columns=lambda webhook: (_place(webhook.created_at, webhook.id), webhook.tenant),
)


class Webhooks:
    def __init__(self, link: Link) -> None:
        self._rows = Rows(link, WEBHOOKS)

    def answers(self) -> Room:
        rows = self._rows
        return {
            KeepWebhook: lambda keep: rows.ask(keep.webhook.id, keep),
            ChangeWebhook: lambda change: rows.ask(change.webhook.id, change),
            DropWebhook: lambda drop: rows.ask(drop.id, drop),
            FindWebhook: lambda find: rows.read(find.id),
            ListWebhooks: self._list,
        }

    async def _list(self, query: ListWebhooks) -> list[StoredWebhook]:
        conditions = [] if query.tenant is None else [is_same(_TENANT, query.tenant)]
        if query.before is not None:
            conditions.append(f"{column(_PLACE)} < {text(_place(*query.before))}")
        return await self._rows.list(*conditions, limit=query.limit)
