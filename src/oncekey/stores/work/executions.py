"""Executions as steps of named SQL: started, advanced, ended, picked up."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

from oncekey.core.answers import Advanced, Existing, Lost, Owned, Picked, Started, Woken
from oncekey.core.execution import (
    Entry,
    Execution,
    PromiseState,
    Sort,
    Status,
    execution_id_of,
    in_order,
)
from oncekey.core.model import Record
from oncekey.core.ports import Gone
from oncekey.core.work import (
    AddToken,
    Advance,
    Ending,
    HandBack,
    Lives,
    Load,
    Mine,
    PickUp,
    Start,
    Withdraw,
)
from oncekey.stores.requests import NOBODY, Row, Setting, Step
from oncekey.stores.rows import OWNER_NAME, record_of
from oncekey.stores.work.claims import claim, forget
from oncekey.stores.work.promises import settle
from oncekey.stores.work.rows import entry_of, execution_of, promise_of

Steps = Generator[Step, list[Row], Any]
_OF_ERROR, _OF_VALUE = 2, 1
_FAILED_STATUS = 500


def start(request: Start, setting: Setting) -> Steps:
    execution, insert = request
    if insert is not None:
        taken = yield from claim(insert, **_link_of(execution))
        if isinstance(taken, Gone):
            return taken
        if taken is not None:
            return (yield from existing(taken))
    owner = setting.owner if execution.status is Status.RUNNING else NOBODY
    if not (yield "make_execution", values_of(execution, owner, keyed=insert is not None)):
        return (yield from _made_before(request, owner))
    return Started(owner)


def _made_before(request: Start, owner: int) -> Steps:
    """The number is in use: by this very start, whose commit nobody heard of, or by another."""
    execution, insert = request
    rows = yield "find_execution", {"id": execution.id, "tenant": None}
    made = execution_of(rows[0]) if rows else None
    if made is not None and _is_same(made, execution, owner):
        return Started(owner)
    if insert is not None:
        if made is not None and made.key == insert.operation.ref.key:
            return (yield from existing_at(insert.digest)) or Gone()
        yield from forget(insert.id)
    return Gone()


def _is_same(made: Execution, asked: Execution, owner: int) -> bool:
    """Whether what is there is what was asked for, and is still the asker's to run: another process
    may draw the number in the same millisecond, even for the same key."""
    same = (made.tenant, made.sort, made.name, made.input, made.created_at) == (
        asked.tenant,
        asked.sort,
        asked.name,
        asked.input,
        asked.created_at,
    )
    if asked.status is not Status.RUNNING:
        return same
    return same and (made.status, made.owner, made.fence) == (Status.RUNNING, owner, asked.fence)


def existing(record: Record) -> Generator[Step, list[Row], Existing]:
    """What a key that is taken stands for."""
    rows = yield "find_execution", {"id": record.id, "tenant": None}
    return Existing(record, execution_of(rows[0]) if rows else None)


def existing_at(digest: bytes) -> Generator[Step, list[Row], Existing | None]:
    rows = yield "find", {"digest": digest}
    return (yield from existing(record_of(rows[0]))) if rows else None


def withdraw(request: Withdraw, setting: Setting) -> Steps:
    yield "lock_execution", {"id": request.id}
    rows = yield "withdraw", {"id": request.id, "owner": setting.owner}
    if rows and rows[0][0]:
        yield from forget(request.id)
    return bool(rows)


def advance(request: Advance, setting: Setting) -> Steps:
    rows = yield from hold(request, setting)
    if not is_held(rows, request):
        # An ending of this very fence is ours: a commit nobody was sure of went through.
        ours = request.ending and rows and rows[0][:2] == (request.ending.status, request.fence)
        return Advanced() if ours else Lost()
    yield from append(request.id, request.entries)
    if request.ending is not None:
        ended = yield from end(request.id, request.ending, request.now)
        return Advanced(ended=ended)
    if request.waits is not None and not (yield from lie_down(request)):
        return Advanced(woken=True)
    return Advanced()


def hold(request: Advance | AddToken, setting: Setting) -> Generator[Step, list[Row], list[Row]]:
    """Lock the execution. One that lay down is got up again by a run that goes on all the same."""
    rows = yield "lock_execution", {"id": request.id}
    if rows and tuple(rows[0][:2]) == (Status.WAITING, request.fence):
        yield "get_up", {"id": request.id, "owner": setting.owner}
        rows = yield "lock_execution", {"id": request.id}
    return rows


def is_held(rows: list[Row], request: Advance | AddToken) -> bool:
    """Whether the run is still the one that has the execution."""
    return bool(rows) and tuple(rows[0][:2]) == (Status.RUNNING, request.fence)


def hand_back(request: HandBack, setting: Setting) -> Steps:
    count = 0
    # By number: whoever else locks several does so in this order, too.
    for number, fence in sorted(request.held):
        count += len((yield "hand_back", {"id": number, "fence": fence}))
    return count


def append(number: int, entries: tuple[Entry, ...]) -> Generator[Step, list[Row], None]:
    for entry in entries:
        yield (
            "append",
            {
                "execution": number,
                "seq": entry.seq,
                "step": int(entry.step),
                "name": entry.name,
                "fingerprint": entry.fingerprint,
                "failed": int(entry.failed),
                "body": entry.body,
                "attempts": entry.attempts,
                "started_at": entry.started_at,
                "at": entry.at,
            },
        )


def lie_down(request: Advance) -> Generator[Step, list[Row], bool]:
    """WAITING from now on, unless something was settled that the run has not seen."""
    values = {"id": request.id, "fence": request.fence, "wakes": request.waits}
    return bool((yield "lie_down", values))


def end(
    number: int, ending: Ending, now: int, *, from_outside: bool = False
) -> Generator[Step, list[Row], tuple[Woken, ...]]:
    """Write the ending of a locked execution, and what follows from it. An ending that is not the
    run's own takes the fence from it."""
    over = ending.status.is_over
    values = {
        "id": number,
        "bump": int(from_outside),
        "status": int(ending.status),
        "result": ending.result,
        "completed_at": now if over else None,
        "expires_at": now + ending.keep if over else None,
    }
    rows = yield "end_execution", values
    if not over or not rows:
        return ()
    keyed, frees_key, called, sort = rows[0]
    yield "cancel_promises", {"execution": number, "now": now}
    if keyed:
        yield from _settle_key(number, ending, now, frees=bool(frees_key))
    if not called:
        return ()
    return (yield from _tell_callers(number, Sort(sort), ending, now))


def _settle_key(
    number: int, ending: Ending, now: int, *, frees: bool
) -> Generator[Step, list[Row], None]:
    failed = ending.status is not Status.SUCCEEDED
    if failed and frees:
        yield from forget(number)
        return
    yield (
        "settle",
        {
            "id": number,
            "fence": 1,
            "kind": _OF_ERROR if failed else _OF_VALUE,
            "status": _FAILED_STATUS if failed else 0,
            "headers": b"",
            "body": ending.result,
            "completed_at": now,
            "expires_at": now + ending.keep,
        },
    )


def _tell_callers(
    number: int, sort: Sort, ending: Ending, now: int
) -> Generator[Step, list[Row], tuple[Woken, ...]]:
    woken = []
    state = PromiseState.RESOLVED if ending.status is Status.SUCCEEDED else PromiseState.REJECTED
    for row in (yield "callers", {"target": number}):
        promise = promise_of(row)
        yield "lock_execution", {"id": promise.execution}
        told = yield from settle(promise, state, ending.result, execution_id_of(sort, number), now)
        if told is not None and told.woken is not None:
            woken.append(told.woken)
    return tuple(woken)


def pick_up(request: PickUp, setting: Setting) -> Steps:
    owners = yield from _owners(setting)
    values = {
        "owner": setting.owner,
        "gone": json.dumps([number for number, alive in owners.items() if not alive]),
        "names": json.dumps([f"{int(sort)}{name}" for sort, name in request.names]),
        "limit": request.limit,
        "only": request.only,
    }
    return (yield from _read_all([row[0] for row in (yield "pick_up", values)]))


def lives(request: Lives, setting: Setting) -> Steps:
    return (yield from _owners(setting)).get(request.owner, False)


def _owners(setting: Setting) -> Generator[Step, list[Row], dict[int, bool]]:
    """Whether each that is known is alive; one that is not known is gone."""
    found = {}
    for number, name, boot, heartbeat, *_ in (yield "owners", {}):
        columns = (*(None,) * OWNER_NAME, name, boot, heartbeat)
        found[number] = number == setting.owner or not setting.is_gone(columns)
    return found


def mine(request: Mine, setting: Setting) -> Steps:
    rows = yield "running_of", {"owner": setting.owner}
    return [
        Owned(number, fence, wakes, Sort(sort), name) for number, fence, wakes, sort, name in rows
    ]


def load(request: Load, setting: Setting) -> Steps:
    rows = yield "lock_execution", {"id": request.id}
    if not rows or tuple(rows[0][:2]) != (Status.RUNNING, request.fence):
        return Lost()
    (loaded,) = yield from _read_all([request.id])
    return loaded


def _read_all(numbers: list[int]) -> Generator[Step, list[Row], list[Picked]]:
    """Executions in the order of their numbers, with everything a replay needs."""
    if not numbers:
        return []
    values = {"ids": json.dumps(numbers)}
    picked = {
        row[0]: Picked(execution_of(row), [], []) for row in (yield "read_executions", values)
    }
    for number, *entry in (yield "journals", values):
        picked[number].entries.append(entry_of(entry))
    for row in (yield "waits_of", values):
        promise = promise_of(row)
        assert promise.execution is not None
        picked[promise.execution].promises.append(promise)
    return [each._replace(entries=in_order(each.entries)) for each in picked.values()]


def values_of(execution: Execution, owner: int, *, keyed: bool) -> dict[str, Any]:
    return {
        "id": execution.id,
        "tenant": execution.tenant,
        "sort": int(execution.sort),
        "name": execution.name,
        "input": execution.input,
        "status": int(execution.status),
        "owner": owner,
        "fence": execution.fence,
        "created_at": execution.created_at,
        "keep": execution.keep,
        "keyed": int(keyed),
        "frees_key": int(execution.frees_key),
        "due_at": execution.due_at,
        "forked_from": execution.forked_from,
        "forked_at": execution.forked_at,
        "origin": execution.origin,
    }


def _link_of(execution: Execution) -> dict[str, str]:
    kind = "task" if execution.sort is Sort.TASK else "workflow"
    return {kind: execution.public_id}
