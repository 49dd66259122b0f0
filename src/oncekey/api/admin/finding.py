"""Durable work of whatever tenant, found by its id."""

from __future__ import annotations

from oncekey.api.endpoint import Call
from oncekey.core.errors import NotFound
from oncekey.core.execution import (
    Execution,
    Promise,
    PromiseKind,
    Sort,
    execution_id_of,
    promise_place_of,
)
from oncekey.core.work import ListPromises
from oncekey.durable.address import ById


async def execution_in(call: Call) -> Execution:
    """The one of the path. Raises `NotFound`."""
    return await call.engine.execution(None, call.path["id"])


async def execution_at(call: Call, number: int) -> Execution | None:
    """Whether that number is a workflow's or a task's need not be known."""
    for sort in Sort:
        try:
            return await call.engine.execution(None, execution_id_of(sort, number))
        except NotFound:
            continue
    return None


async def promise_with(call: Call, promise_id: str) -> Promise:
    """Raises `NotFound`."""
    place = promise_place_of(promise_id)
    if place is None:
        raise NotFound("there is no such promise")
    if place.execution is not None:
        execution = await call.engine.execution(None, promise_id.partition(":")[0])
        return await call.engine.promise(execution.tenant, ById(promise_id))
    assert place.id is not None
    # The newest of those below the next one.
    query = ListPromises(None, kind=PromiseKind.PROMISE, before=place.id + 1, limit=1)
    for promise in await call.engine.promises(query):
        if promise.public_id == promise_id:
            return promise
    raise NotFound("there is no such promise")
