"""Webhooks, as steps of named SQL."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from oncekey.core.webhooks import (
    ChangeWebhook,
    DropWebhook,
    FindWebhook,
    KeepWebhook,
    ListWebhooks,
    StoredWebhook,
)
from oncekey.stores.requests import Row, Setting, Step, Steps

Answers = Generator[Step, list[Row], Any]

# After every time and id.
_LAST = ((1 << 63) - 1, "")


def _keep(keep: KeepWebhook, _: Setting) -> Answers:
    rows = yield "keep_webhook", keep.webhook._asdict()
    return True if rows else (yield from _is(keep.webhook))


def _find(find: FindWebhook, _: Setting) -> Answers:
    rows = yield "find_webhook", {"id": find.id}
    return StoredWebhook(*rows[0]) if rows else None


def _list(query: ListWebhooks, _: Setting) -> Answers:
    at, id_ = query.before or _LAST
    values = {"tenant": query.tenant, "at": at, "id": id_, "limit": query.limit}
    return [StoredWebhook(*row) for row in (yield "list_webhooks", values)]


def _change(change: ChangeWebhook, _: Setting) -> Answers:
    rows = yield "change_webhook", {**change.webhook._asdict(), "seen": change.seen}
    return True if rows else (yield from _is(change.webhook))


def _drop(drop: DropWebhook, _: Setting) -> Answers:
    return bool((yield "drop_webhook", {"id": drop.id}))


def _is(webhook: StoredWebhook) -> Answers:
    """Whether it is there to the letter: then a commit we were unsure of went through."""
    rows = yield "find_webhook", {"id": webhook.id}
    return bool(rows) and StoredWebhook(*rows[0]) == webhook


PLANS: dict[type, Callable[[Any, Setting], Steps]] = {
    KeepWebhook: _keep,
    FindWebhook: _find,
    ListWebhooks: _list,
    ChangeWebhook: _change,
    DropWebhook: _drop,
}
READS: frozenset[type] = frozenset({FindWebhook, ListWebhooks})
