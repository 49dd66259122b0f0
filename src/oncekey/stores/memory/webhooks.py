"""The oracle of webhooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oncekey.core.webhooks import (
    ChangeWebhook,
    DropWebhook,
    FindWebhook,
    KeepWebhook,
    ListWebhooks,
    StoredWebhook,
)


class MemoryWebhooks:
    def __init__(self, kept: dict[str, StoredWebhook] | None = None) -> None:
        self._kept = {} if kept is None else kept

    def answers(self) -> dict[type, Callable[[Any], Any]]:
        return {
            KeepWebhook: self._keep,
            FindWebhook: lambda find: self._kept.get(find.id),
            ListWebhooks: self._list,
            ChangeWebhook: self._change,
            DropWebhook: lambda drop: self._kept.pop(drop.id, None) is not None,
        }

    def _keep(self, keep: KeepWebhook) -> bool:
        return self._kept.setdefault(keep.webhook.id, keep.webhook) == keep.webhook

    def _list(self, query: ListWebhooks) -> list[StoredWebhook]:
        found = [
            each
            for each in self._kept.values()
            if query.tenant in {None, each.tenant}
            and (query.before is None or (each.created_at, each.id) < query.before)
        ]
        found.sort(key=lambda each: (each.created_at, each.id), reverse=True)
        return found[: query.limit]

    def _change(self, change: ChangeWebhook) -> bool:
        webhook, seen = change
        old = self._kept.get(webhook.id)
        if old is None or old.version != seen:
            return old == webhook
        self._kept[webhook.id] = webhook._replace(
            tenant=old.tenant,
            project=old.project,
            provider=old.provider,
            created_at=old.created_at,
        )
        return True
