"""Where a key has led: the workflow, task, promise or event that followed it, and what became of
that. For deliveries, also by the key under which what follows was done."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from oncekey.api.admin.finding import execution_at, promise_with
from oncekey.api.admin.noting import means_of
from oncekey.api.admin.records import tenant_of
from oncekey.api.admin.sources import shape_of_delivery
from oncekey.api.endpoint import Call
from oncekey.core.errors import NotFound, OnceKeyError
from oncekey.core.execution import Execution, execution_id_of, execution_number_of
from oncekey.core.looking import LOOK
from oncekey.core.model import Record
from oncekey.core.ports import Found
from oncekey.core.work import event_id_of
from oncekey.durable.embedded.asking import (
    EVENTS,
    REQUESTS,
    STARTS,
    is_of_durable_work,
    ref_of,
)
from oncekey.durable.shapes import Shape
from oncekey.webhooks.naming import effect_key, is_delivery

AWAITED = "awaited"
"""The state of a promise that nobody has made, and that something is parked for."""
_MOST_DELIVERIES = 20


async def leads_of(call: Call, found: Found) -> list[Shape]:
    """What followed, in the order in which one thing led to the next."""
    record = found.record
    if is_delivery(record.ref.scope):
        return [lead async for lead in _of_delivery(call, record)]
    return [lead async for lead in _of_record(call, record)]


async def deliveries_of(call: Call, found: Found) -> list[Shape]:
    """Those that were this operation, or duplicates of it, newest first."""
    record = found.record
    if not is_delivery(record.ref.scope):
        return []
    webhook = record.ref.scope.endpoint.rpartition("/")[2]
    came = await means_of(call).deliveries.list(
        webhook, operation=record.id, limit=_MOST_DELIVERIES, look=LOOK
    )
    return [shape_of_delivery(each) for each in came]


async def _of_record(call: Call, record: Record) -> AsyncIterator[Shape]:
    link = record.link
    if link is not None and link.kind == "promise":
        async for lead in _promise(call, link.id):
            yield lead
    elif link is not None:
        yield await _execution(call, link.id)
    elif is_of_durable_work(record.ref.scope, EVENTS):
        yield _lead("event", event_id_of(record.id), None, "published")


async def _of_delivery(call: Call, record: Record) -> AsyncIterator[Shape]:
    told = _told_in(record)
    match told:
        case {"promise_id": str(promise)}:
            async for lead in _promise(call, promise, str(told.get("status", ""))):
                yield lead
        case {"workflow_id": str(workflow)}:
            yield await _execution(call, workflow)
        case {"event_id": str(event), "matched": int(matched)}:
            yield _lead("event", event, None, "published", f"it fitted {matched} waits")
        case _:
            leads = [lead async for lead in _by_effect_key(call, record)]
            for lead in leads:
                yield lead
            if not leads and told.get("status") == "parked":
                until = told.get("parked_until")
                yield _lead("promise", None, None, AWAITED, f"kept for it until {until}")
            elif not leads and record.outcome is not None and "status" not in told:
                status = f"answered {record.outcome.status}"
                yield _lead("service", None, None, status)


async def _by_effect_key(call: Call, record: Record) -> AsyncIterator[Shape]:
    """What was done under the key of what follows, also when the delivery does not say."""
    tenant, key = tenant_of(record.ref.scope.namespace), effect_key(record)
    if tenant is None:
        return
    for endpoint in (STARTS, REQUESTS, EVENTS):
        try:
            effect = await call.ledger.apeek(ref_of(tenant, endpoint, key))
        except OnceKeyError:
            # Too long for a key of durable work: then nothing was done under it.
            return
        if effect is not None:
            async for lead in _of_record(call, effect):
                yield lead


async def _promise(call: Call, promise_id: str, detail: str = "") -> AsyncIterator[Shape]:
    """The promise, and the execution that waits for it."""
    try:
        promise = await promise_with(call, promise_id)
    except NotFound:
        yield _lead("promise", promise_id, None, "gone", detail)
        return
    state = promise.state.name.lower()
    yield _lead("promise", promise.public_id, promise.name, state, detail)
    if promise.execution is not None:
        yield await _execution(call, execution_id_of(promise.sort, promise.execution))


async def _execution(call: Call, execution_id: str) -> Shape:
    place = execution_number_of(execution_id)
    found: Execution | None = None if place is None else await execution_at(call, place[1])
    if found is None:
        return _lead("workflow", execution_id, None, "gone")
    kind, status = found.sort.name.lower(), found.status.name.lower()
    return _lead(kind, found.public_id, found.name, status)


def _lead(kind: str, id: str | None, name: str | None, state: str, detail: str = "") -> Shape:  # noqa: A002
    return {"kind": kind, "id": id, "name": name, "state": state, "detail": detail}


def _told_in(record: Record) -> Shape:
    """What the delivery was answered with. The service behind may answer anything."""
    try:
        body = b"" if record.outcome is None else record.outcome.body
        return msgspec.json.decode(body, type=dict)
    except (msgspec.MsgspecError, RecursionError):
        return {}
