"""Events as steps of named SQL."""

from __future__ import annotations

from collections.abc import Generator

from oncekey.core.answers import Existing
from oncekey.core.ports import Gone
from oncekey.core.work import Event, Matched, Publish
from oncekey.stores.requests import Row, Setting, Step
from oncekey.stores.work.claims import claim, forget
from oncekey.stores.work.executions import Steps
from oncekey.stores.work.rows import event_of


def publish(request: Publish, setting: Setting) -> Steps:
    event, insert = request
    if insert is not None:
        taken = yield from claim(insert)
        if isinstance(taken, Gone):
            return taken
        if taken is not None:
            return Existing(taken, None)
        yield (
            "settle",
            {
                "id": insert.id,
                "fence": 1,
                "kind": 1,
                "status": 0,
                "headers": b"",
                "body": b"null",
                "completed_at": insert.created_at,
                "expires_at": insert.expires_at,
            },
        )
    made = yield (
        "make_event",
        {
            "id": event.id,
            "tenant": event.tenant,
            "topic": event.topic,
            "data": event.data,
            "headers": event.headers,
            "created_at": event.created_at,
            "expires_at": event.expires_at,
        },
    )
    if made or (yield from _is_there(event)):
        return True
    if insert is not None:
        yield from forget(insert.id)
    return Gone()


def _is_there(event: Event) -> Generator[Step, list[Row], bool]:
    """Whether the event with its number is this one: an unsure commit went through."""
    rows = yield (
        "events",
        {
            "tenant": event.tenant,
            "topic": event.topic,
            "since": event.created_at,
            "after": event.id - 1,
            "unmatched": 0,
            "limit": 1,
        },
    )
    found = event_of(rows[0]) if rows else None
    return found is not None and (found.id, found.data) == (event.id, event.data)


def matched(request: Matched, setting: Setting) -> Steps:
    rows = yield "event_is_matched", {"id": request.event}
    return int(rows[0][0]) if rows else 0
