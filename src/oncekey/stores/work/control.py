"""Cancel, resume and fork as steps of named SQL: the claim and the effect are one transaction."""

from __future__ import annotations

import json
from collections.abc import Generator
from hashlib import blake2b
from typing import Any

from oncekey.core.answers import Controlled, Woken
from oncekey.core.execution import Sort, Status, execution_id_of, in_order
from oncekey.core.ports import Gone
from oncekey.core.work import Control, Ending
from oncekey.stores.requests import NOBODY, Row, Setting, Step
from oncekey.stores.work.executions import Steps, end, values_of
from oncekey.stores.work.rows import entry_of, execution_of

Effect = Generator[Step, list[Row], tuple[int, str, tuple[Woken, ...]]]


class _Unfit(Exception):
    """The action does not fit the state the execution is in."""


class _Taken(Exception):
    """Another process has drawn the number of the fork as well."""


def control(request: Control, setting: Setting) -> Steps:
    # One key may be used for two executions at once; whoever comes second is to see the first.
    yield "lock_key", {"digest": _digest_of(request)}
    rows = yield "lock_execution", {"id": request.execution}
    values = {"tenant": request.tenant, "request_key": request.request_key}
    # The answer to a key is kept longer than some executions are.
    seen = yield "find_control", values
    if seen:
        return _seen(request, seen[0])
    if not rows or rows[0][2] != request.tenant:
        return Controlled("unknown")
    try:
        number, answer, ended = yield from _EFFECTS[request.action](request, Status(rows[0][0]))
    except _Taken:
        return Gone()
    except _Unfit as unfit:
        answer = json.dumps({"error": str(unfit)})
        yield "keep_control", _values_of(request, "failed", answer)
        return Controlled("failed", answer)
    yield "keep_control", _values_of(request, "succeeded", answer)
    changed = yield "find_execution", {"id": number, "tenant": request.tenant}
    return Controlled("done", answer, execution_of(changed[0]), ended)


def _seen(request: Control, row: Row) -> Controlled:
    action, execution, parameters, status, answer = row
    if (action, execution, parameters) != (request.action, request.execution, request.parameters):
        return Controlled("other")
    return Controlled("replayed" if status == "succeeded" else "failed-before", answer)


def _cancel(request: Control, status: Status) -> Effect:
    if status in {Status.SUCCEEDED, Status.FAILED}:
        raise _Unfit(f"it is {status.name.lower()} already; what is over cannot be cancelled")
    rows = yield "find_execution", {"id": request.execution, "tenant": request.tenant}
    execution = execution_of(rows[0])
    ended: tuple[Woken, ...] = ()
    if status is not Status.CANCELLED:
        ending = Ending(Status.CANCELLED, request.failure, execution.keep)
        ended = yield from end(request.execution, ending, request.now, from_outside=True)
    return request.execution, _answer_of(execution.public_id, Status.CANCELLED), ended


def _resume(request: Control, status: Status) -> Effect:
    if status is not Status.PAUSED:
        raise _Unfit(f"it is {status.name.lower()}; only what is paused can be resumed")
    yield "forget_retries", {"execution": request.execution}
    rows = yield "resume_execution", {"id": request.execution}
    public_id = execution_id_of(Sort(rows[0][0]), request.execution)
    return request.execution, _answer_of(public_id, Status.READY), ()


def _fork(request: Control, status: Status) -> Effect:
    """A new execution with the journal up to the step, in the order in which steps ended."""
    rows = yield "find_execution", {"id": request.execution, "tenant": request.tenant}
    source = execution_of(rows[0])
    rows = yield "journal", {"execution": source.id}
    entries = in_order(entry_of(row) for row in rows)
    if not 1 <= request.from_step <= len(entries) + 1:
        raise _Unfit(f"from_step must be 1 to {len(entries) + 1}, as in its journal")
    copied = [entry.seq for entry in entries[: request.from_step - 1]]
    fork = source._replace(
        id=request.fork,
        status=Status.READY,
        fence=1,
        created_at=request.now,
        due_at=None if source.due_at is None else request.now + source.due_at - source.created_at,
        forked_from=source.id,
        forked_at=request.from_step,
        origin=source.origin or source.id,
    )
    if not (yield "make_execution", values_of(fork, NOBODY, keyed=False)):
        raise _Taken
    values = {"source": source.id, "fork": fork.id, "seqs": json.dumps(copied)}
    yield "copy_journal", values
    return fork.id, _answer_of(fork.public_id, Status.READY), ()


_EFFECTS: dict[str, Any] = {"cancel": _cancel, "resume": _resume, "fork": _fork}


def _answer_of(public_id: str, status: Status) -> str:
    return json.dumps({"workflow_id": public_id, "status": status.name.lower()})


def _digest_of(request: Control) -> bytes:
    parts = json.dumps(["control", request.tenant, request.request_key])
    return blake2b(parts.encode(), digest_size=16).digest()


def _values_of(request: Control, status: str, answer: str) -> dict[str, Any]:
    return {
        "tenant": request.tenant,
        "request_key": request.request_key,
        "action": request.action,
        "execution": request.execution,
        "parameters": request.parameters,
        "status": status,
        "answer": answer,
        "now": request.now,
    }
