"""Executions, their journals and what they wait for, as people and programs see them."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from oncekey.cli.text import moment, shortened
from oncekey.core.errors import NotFound
from oncekey.core.execution import (
    Entry,
    Execution,
    Promise,
    PromiseKind,
    PromiseState,
    Sort,
    Status,
    execution_id_of,
)
from oncekey.core.retention import duration_of
from oncekey.core.work import ListPromises
from oncekey.durable.engine import Engine
from oncekey.durable.failure import decode_failure
from oncekey.durable.shapes import Shape, shape_of_entry, shape_of_execution, time_of

# An execution waits for so many things at once only when its code makes as many branches.
_MOST_WAITS = 1000
_LONGEST_VALUE = 80


class Wait(NamedTuple):
    """Something an execution waits for; `called` is the id of the one a call has started."""

    promise: Promise
    called: str | None = None


class Story(NamedTuple):
    """An execution with everything it has done, and what it waits for now."""

    execution: Execution
    entries: list[Entry]
    waits: list[Wait]


async def story_of(engine: Engine, tenant: str, execution: Execution) -> Story:
    entries = await engine.journal(tenant, execution.public_id)
    query = ListPromises(tenant, PromiseState.PENDING, execution=execution.id, limit=_MOST_WAITS)
    pending = [] if execution.status.is_over else await engine.promises(query)
    waits = [Wait(each, await _called(engine, tenant, each)) for each in reversed(pending)]
    return Story(execution, entries, waits)


async def _called(engine: Engine, tenant: str, promise: Promise) -> str | None:
    """A call knows the number of what it waits for, not whether that is a workflow or a task."""
    if promise.target is None:
        return None
    for sort in Sort:
        try:
            found = await engine.execution(tenant, execution_id_of(sort, promise.target))
        except NotFound:
            continue
        return found.public_id
    return None


# -- for people ------------------------------------------------------------------------------

COLUMNS = ("ID", "NAME", "STATUS", "KEY", "CREATED", "COMPLETED")
STEPS = ("STEP", "KIND", "NAME", "ATTEMPTS", "TOOK", "VALUE")
WAITS = ("WAITS FOR", "NAME", "SINCE", "UNTIL", "MORE")


def row_of(execution: Execution) -> tuple[str, ...]:
    return (
        execution.public_id,
        execution.name,
        execution.status.name.lower(),
        execution.key or "",
        moment(execution.created_at),
        moment(execution.completed_at),
    )


def pairs_of(execution: Execution) -> list[tuple[str, str]]:
    origin = execution.forked_from
    return [
        ("id", execution.public_id),
        (execution.sort.name.lower(), execution.name),
        ("status", execution.status.name.lower()),
        ("key", execution.key or ""),
        ("input", shortened(execution.input)),
        *_ending_of(execution),
        ("forked from", "" if origin is None else execution_id_of(execution.sort, origin)),
        ("created", moment(execution.created_at, zone=True)),
        ("must end by", "" if execution.status.is_over else moment(execution.due_at, zone=True)),
        ("completed", moment(execution.completed_at, zone=True)),
        ("expires", moment(execution.expires_at, zone=True)),
    ]


def step_row_of(number: int, entry: Entry) -> tuple[str, ...]:
    value = failure_in(entry.body) if entry.failed else shortened(entry.body, _LONGEST_VALUE)
    took = duration_of(max(0, entry.at - entry.started_at) / 1000)
    kind = entry.step.name.lower()
    return str(number), kind, entry.name, str(entry.attempts), took, value


def wait_row_of(wait: Wait) -> tuple[str, ...]:
    promise = wait.promise
    return (
        promise.kind.name.lower(),
        promise.name,
        moment(promise.created_at),
        moment(promise.due_at),
        _more_of(wait),
    )


def _ending_of(execution: Execution) -> list[tuple[str, str]]:
    if execution.status is Status.SUCCEEDED:
        return [("result", shortened(execution.result or b"null"))]
    if execution.result is None:
        return []
    return [("error", failure_in(execution.result))]


def _more_of(wait: Wait) -> str:
    promise = wait.promise
    match promise.kind:
        case PromiseKind.PROMISE:
            return f"key {promise.key}" if promise.key else ""
        case PromiseKind.RETRY:
            count = f"{promise.attempts} attempt{'' if promise.attempts == 1 else 's'}"
            return f"{count} failed, the last with {failure_in(promise.body)}"
        case PromiseKind.EVENT:
            condition = f"where {promise.condition}" if promise.condition else ""
            trouble = f"trouble: {promise.trouble}" if promise.trouble else ""
            return "; ".join(filter(None, (condition, trouble)))
        case PromiseKind.CALL:
            return wait.called or ""
        case PromiseKind.SLEEP:
            return ""


def failure_in(body: bytes | None) -> str:
    failure = decode_failure(body)
    return f"{failure.code}: {failure.message}"


# -- for programs ----------------------------------------------------------------------------


def shape_of_story(story: Story) -> Shape:
    """The execution in the words of the API, with its journal and what it waits for."""
    shape = shape_of_execution(story.execution)
    shape["journal"] = [shape_of_entry(*each) for each in enumerate(story.entries, 1)]
    shape["waits"] = [_shape_of_wait(each) for each in story.waits]
    return shape


def _shape_of_wait(wait: Wait) -> Shape:
    promise = wait.promise
    body: Any = msgspec.Raw(promise.body) if promise.body else None
    return {
        "kind": promise.kind.name.lower(),
        "name": promise.name,
        "key": promise.key,
        "condition": promise.condition,
        "trouble": promise.trouble,
        "attempts": promise.attempts,
        "error": body,
        "called": wait.called,
        "created_at": time_of(promise.created_at),
        "timeout_at": time_of(promise.due_at),
    }
