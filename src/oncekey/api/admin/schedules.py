"""Schedules over HTTP for admins: seen, paused and resumed."""

from __future__ import annotations

import asyncio

from oncekey.api.admin.noting import RULE, note
from oncekey.api.admin.runs import bad_runs
from oncekey.api.endpoint import Call, Endpoint, Parameter, Reply
from oncekey.api.pages import page_of
from oncekey.api.requests import LIMIT, limit_in
from oncekey.core.looking import LOOK
from oncekey.core.model import Record
from oncekey.core.ports import Query
from oncekey.core.schedules import ListSchedules, StoredSchedule
from oncekey.core.steps import Steps
from oncekey.durable.shapes import Shape, json_of, time_of
from oncekey.schedules import keeping
from oncekey.schedules.dispatch import ref_of
from oncekey.schedules.shapes import ended_of, shape_of_schedule, shape_of_whole
from oncekey.wire.problem import Response
from oncekey.wire.replies import OK, ok

_RUNS = 10
# So long a tick may take to be noticed by whoever is to begin it.
_LATE = 60_000


async def list_all(call: Call) -> Response:
    limit = limit_in(call.query)
    query = ListSchedules(call.query.get("after", ""), call.query.get("tenant"), limit + 1)
    found = await call.ledger.arun(_page(query))
    bad, now = await bad_runs(call, found, query.tenant), call.ledger.clock.now()

    def shape_of(stored: StoredSchedule) -> Shape:
        return {
            **shape_of_schedule(stored),
            "last_state": bad.state_of(stored),
            "overdue": not stored.paused and stored.next_at + _LATE < now,
        }

    return page_of("schedules", "next_after", found, limit, shape_of, lambda stored: stored.id)


async def show(call: Call) -> Response:
    stored = await _found(call)
    last: Record | None = None
    if stored.last_at is not None:
        last = await call.ledger.apeek(ref_of(stored, stored.last_at))
    shape = {
        **shape_of_whole(stored, last, call.ledger.clock.now()),
        "runs": [_shape_of_run(each) for each in await _runs_of(call, stored)],
    }
    return ok(json_of(shape))


async def _runs_of(call: Call, stored: StoredSchedule) -> list[Record]:
    """The newest that are kept still."""
    scope, key = ref_of(stored, 0)
    query = Query(
        prefix=key[: key.rindex(":") + 1],
        namespace=scope.namespace,
        endpoint=scope.endpoint,
        limit=_RUNS,
        look=LOOK,
    )
    found = await asyncio.to_thread(call.ledger.list, query)
    # A list has no bodies.
    whole = await asyncio.gather(*(call.ledger.apeek(each.record.id) for each in found))
    return [each for each in whole if each is not None and _tick_of(each).isdigit()]


def _tick_of(record: Record) -> str:
    return record.ref.key.rpartition(":")[2]


def _shape_of_run(record: Record) -> Shape:
    ended = ended_of(record)
    return {
        "tick": time_of(int(_tick_of(record))),
        "operation_id": record.operation_id,
        "state": record.state.name.lower(),
        "text": "" if ended is None else ended[1],
        "completed_at": time_of(record.completed_at),
    }


async def pause(call: Call) -> Response:
    stored = await _found(call)
    await note(call, "schedule.pause", stored.id, tenant=stored.tenant)
    paused = await call.ledger.arun(keeping.pause(stored.id, call.ledger.clock))
    return ok(json_of(shape_of_schedule(paused)))


async def resume(call: Call) -> Response:
    stored = await _found(call)
    await note(call, "schedule.resume", stored.id, tenant=stored.tenant)
    resumed = await call.ledger.arun(keeping.resume(stored.id, call.ledger.clock))
    return ok(json_of(shape_of_schedule(resumed)))


async def _found(call: Call) -> StoredSchedule:
    return await call.ledger.arun(keeping.find(call.path["id"]))


def _page(query: ListSchedules) -> Steps[list[StoredSchedule]]:
    found: list[StoredSchedule] = yield query
    return found


_ONE = "/api/admin/schedules/{id}"

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/api/admin/schedules",
        list_all,
        "List schedules, in the order of their ids",
        {OK: Reply("A page of them.", "SchedulesPage")},
        access="admin",
        query=(
            Parameter("tenant", "Only of this tenant.", {"type": "string"}),
            LIMIT,
            Parameter("after", "The `next_after` of the page before.", {"type": "string"}),
        ),
    ),
    Endpoint(
        "GET",
        _ONE,
        show,
        "See a schedule, what became of its last ticks, and the next ones",
        {OK: Reply("As it is now.", "WholeSchedule")},
        access="admin",
        problems=("not-found", "schedule-invalid"),
    ),
    Endpoint(
        "POST",
        f"{_ONE}/pause",
        pause,
        "Stop a schedule until it is resumed",
        {OK: Reply("As it is now.", "Schedule")},
        policy="ACCEPTED",
        access="admin",
        problems=("not-found",),
        rule=RULE,
    ),
    Endpoint(
        "POST",
        f"{_ONE}/resume",
        resume,
        "Let a paused schedule go on with its next tick",
        {OK: Reply("As it is now.", "Schedule")},
        policy="ACCEPTED",
        access="admin",
        problems=("not-found", "schedule-invalid"),
        rule=RULE,
    ),
)
