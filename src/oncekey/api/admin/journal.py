"""What a workflow has done and what it waits for now, to be drawn as a timeline."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from oncekey.api.admin.bounded import head_of
from oncekey.api.admin.finding import execution_at, execution_in
from oncekey.api.admin.waiting import LARGEST_VALUE, promise_id_of, shape_of_wait
from oncekey.api.endpoint import Call, Endpoint, Parameter, Reply
from oncekey.api.pages import fitting
from oncekey.api.requests import LIMIT, limit_in
from oncekey.api.workflows import journal_after
from oncekey.core.execution import (
    Entry,
    Execution,
    Promise,
    PromiseState,
    Step,
)
from oncekey.core.work import ListPromises
from oncekey.durable.shapes import Shape, json_of, time_of
from oncekey.wire.problem import Response
from oncekey.wire.replies import OK, ok

_MOST_PROMISES = 1000


class Told(NamedTuple):
    """What is known of a journal beside its entries."""

    execution: Execution
    promises: dict[int, Promise]
    """By the position of their step."""
    called: dict[int, str]
    """The ids of executions that were called, by their number."""


async def journal(call: Call) -> Response:
    limit, after = limit_in(call.query), journal_after(call)
    execution = await execution_in(call)
    entries = await call.engine.journal(execution.tenant, execution.public_id)
    page = list(enumerate(entries, 1))[after : after + limit]
    promises = await _promises_of(call, execution)
    pending = [each for each in promises if each.state is PromiseState.PENDING]
    shown = {entry.seq for _, entry in page}
    named = [each for each in promises if each.seq in shown]
    told = Told(
        execution,
        {each.seq: each for each in named if each.seq is not None},
        await _called(call, [*named, *pending]),
    )
    steps = fitting(page, lambda each: _shape_of_step(*each, told))
    last = after + len(steps)
    shape = {
        "steps": steps,
        "count": len(entries),
        "next_after": last if last < len(entries) else None,
        "waits": [shape_of_wait(each, _target_of(each, told)) for each in reversed(pending)],
    }
    return ok(json_of(shape))


async def _promises_of(call: Call, execution: Execution) -> list[Promise]:
    """Newest first."""
    query = ListPromises(execution.tenant, execution=execution.id, limit=_MOST_PROMISES)
    return await call.engine.promises(query)


async def _called(call: Call, promises: Iterable[Promise]) -> dict[int, str]:
    """A call knows the number of what it waits for, not whether that is a workflow or a task."""
    targets = {each.target for each in promises if each.target is not None}
    found = await asyncio.gather(*(execution_at(call, target) for target in targets))
    return {each.id: each.public_id for each in found if each is not None}


def _shape_of_step(number: int, entry: Entry, told: Told) -> Shape:
    promise = told.promises.get(entry.seq)
    value = head_of(entry.body, LARGEST_VALUE)
    return {
        "seq": f"{entry.seq:016x}",
        "from_step": number,
        "kind": entry.step.name.lower(),
        "name": entry.name,
        "started_at": time_of(entry.started_at),
        "at": time_of(entry.at),
        "duration_ms": max(0, entry.at - entry.started_at),
        "attempts": entry.attempts,
        "failed": entry.failed,
        "value": value.text,
        "whole": value.whole,
        "promise_id": promise_id_of(promise),
        "key": None if promise is None else promise.key,
        "settled_by": None if promise is None else promise.settled_by,
        "called": _started_by(entry) if entry.step is Step.START else _target_of(promise, told),
    }


def _target_of(promise: Promise | None, told: Told) -> str | None:
    if promise is None or promise.target is None:
        return None
    return told.called.get(promise.target)


def _started_by(entry: Entry) -> str | None:
    if entry.failed:
        return None
    try:
        return msgspec.json.decode(entry.body, type=str)
    except msgspec.MsgspecError:
        return None


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/api/admin/workflows/{id}/journal",
        journal,
        "See what a workflow or a task has done, step by step, and what it waits for now",
        {OK: Reply("Finished steps in the order in which they ended, and waits.", "Timeline")},
        access="admin",
        query=(
            LIMIT,
            Parameter("after", "The `next_after` of an earlier page.", {"type": "integer"}),
        ),
        problems=("not-found",),
    ),
)
