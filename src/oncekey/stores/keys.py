"""The list of keys, as steps of named SQL."""

from __future__ import annotations

from collections.abc import Generator

from oncekey.core.looking import Looked
from oncekey.core.model import State
from oncekey.core.ports import Query
from oncekey.stores.requests import Row, Step
from oncekey.stores.windows import Span, look_through


def list_keys(query: Query, now: int) -> Generator[Step, list[Row], Looked[Row]]:
    """Without what was answered: nobody who looks at a list needs it, and it may be large."""
    values = {
        "namespace": query.namespace,
        "within": query.within,
        "endpoint": query.endpoint,
        "prefix": query.prefix,
        "key": query.key,
        "state": None if query.state is None else int(query.state),
        "now": now,
    }
    lowest = max(0, query.after + 1)
    # Whether and how one has ended stands in another table.
    everywhere = Span(
        "list_keys", "list_keys_edge", values, lowest, weight=1 if query.state is None else 3
    )
    held = Span("list_held_keys", "list_held_keys_edge", values, lowest, weight=4)
    match query.state:
        case State.IN_PROGRESS:
            # No need to look at everything that is settled.
            floor = (yield "lowest_floor", {})[0][0]
            spans = [everywhere._replace(lowest=max(lowest, floor)), held]
        case State.PROMISE:
            spans = [held]
        case _:
            spans = [everywhere]
    return (yield from look_through(spans, query.before, query.limit, query.look))
