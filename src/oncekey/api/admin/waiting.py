"""What workflows and tasks wait for now; for a page of them without asking for each."""

from __future__ import annotations

from collections.abc import Iterable

from oncekey.api.admin.bounded import head_of
from oncekey.api.endpoint import Call
from oncekey.core.execution import Execution, Promise, PromiseKind, PromiseState, Status
from oncekey.core.work import ListPromises
from oncekey.durable.shapes import Shape, time_of

# What a timeline shows of a value.
LARGEST_VALUE = 4 << 10
# Of several things that one waits for, the first of these is told.
_KINDS = (PromiseKind.RETRY, PromiseKind.EVENT, PromiseKind.PROMISE)
_MOST, _LOOKED_AT = 200, 10_000


async def waits_of(call: Call, found: Iterable[Execution]) -> dict[int, Shape]:
    """By the number of the execution, as far as what they wait for is among what was made last:
    one question for each kind, however many wait."""
    waits: dict[int, Shape] = {}
    if not any(each.status is Status.WAITING for each in found):
        return waits
    query = ListPromises(
        call.query.get("tenant"), PromiseState.PENDING, limit=_MOST, look=_LOOKED_AT
    )
    for kind in _KINDS:
        for promise in await call.engine.promises(query._replace(kind=kind)):
            if promise.execution is not None and promise.execution not in waits:
                waits[promise.execution] = shape_of_wait(promise)
    return waits


async def wait_of(call: Call, execution: Execution) -> Shape | None:
    if execution.status is not Status.WAITING:
        return None
    query = ListPromises(
        execution.tenant, PromiseState.PENDING, execution=execution.id, limit=_MOST
    )
    found = [each for each in await call.engine.promises(query) if each.kind in _KINDS]
    first = min(found, key=lambda each: _KINDS.index(each.kind), default=None)
    return None if first is None else shape_of_wait(first)


def shape_of_wait(promise: Promise, target: str | None = None) -> Shape:
    """`target` is the execution whose end it is."""
    trouble = promise.trouble
    if promise.kind is PromiseKind.RETRY:
        trouble = head_of(promise.body, LARGEST_VALUE).text
    return {
        "kind": promise.kind.name.lower(),
        "name": promise.name,
        "promise_id": promise_id_of(promise),
        "key": promise.key,
        "since": time_of(promise.created_at),
        "due_at": time_of(promise.due_at),
        "topic": promise.topic,
        "condition": promise.condition,
        "trouble": trouble,
        "attempts": promise.attempts,
        "target": target,
    }


def promise_id_of(promise: Promise | None) -> str | None:
    """Only what somebody else can settle is known by an id."""
    if promise is None or promise.kind is not PromiseKind.PROMISE:
        return None
    return promise.public_id
