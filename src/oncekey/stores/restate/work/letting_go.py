"""What a key stood for has it no more, and is told so."""

from __future__ import annotations

from typing import Any

from oncekey.core.execution import promise_place_of
from oncekey.core.model import Record
from oncekey.stores.restate.work.calls import send

_EXECUTIONS, _PROMISES = "oncekey.Execution", "oncekey.Promise"


def let_go(ctx: Any, record: Record | None) -> None:
    """Only what is still to be settled by its key shows it; a request has nothing to show."""
    if record is None or record.link is None:
        return
    if record.link.kind != "promise":
        send(ctx, _EXECUTIONS, f"{record.id:016x}", "unkey", record.id)
        return
    place = promise_place_of(record.link.id)
    if place is None or record.outcome is not None:
        return
    if place.execution is not None:
        send(ctx, _EXECUTIONS, f"{place.execution:016x}", "unkey", record.id)
    else:
        send(ctx, _PROMISES, f"{record.id:016x}", "unkey", record.id)
