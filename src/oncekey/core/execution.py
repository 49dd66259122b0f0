"""The nouns of durable work, as immutable values: executions, their journal, and promises."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

# The position of a step: 32 bits of branch above 32 bits of index. An execution as a whole stands
# behind every step it could make.
BRANCH_BITS = 32
BODY = (1 << 63) - 1

_EXECUTION_ID = re.compile(r"(wf|tk)_([0-9a-f]{16})")
_ALONE_ID = re.compile(r"pr_([0-9a-f]{16})")


class Sort(IntEnum):
    """What is executed: a workflow has a context to wait with, a task is one durable call."""

    WORKFLOW = 0
    TASK = 1


class Status(IntEnum):
    READY = 0  # for any process that knows its code
    RUNNING = 1  # in the process that owns it
    WAITING = 2  # for a promise, and held by nobody
    SUCCEEDED = 3
    FAILED = 4
    CANCELLED = 5
    PAUSED = 6  # out of attempts, or its code no longer fits its journal; `resume` goes on

    @property
    def is_over(self) -> bool:
        return self in _OVER


_OVER = frozenset({Status.SUCCEEDED, Status.FAILED, Status.CANCELLED})


class Execution(NamedTuple):
    """A workflow or a task, as read. Times are milliseconds since 1970."""

    id: int
    tenant: str
    sort: Sort
    name: str
    input: bytes
    status: Status
    owner: int
    fence: int
    created_at: int
    wakes: int = 0
    """How often something it waited for was settled."""
    keep: int = 24 * 3600 * 1000
    """How long it is kept once it is over, in ms."""
    key: str | None = None
    frees_key: bool = False
    """Whether a failed or cancelled execution gives its key back."""
    due_at: int | None = None
    completed_at: int | None = None
    expires_at: int | None = None
    result: bytes | None = None
    """JSON: the value of a success; of anything else that is over or paused, the failure."""
    forked_from: int | None = None
    forked_at: int | None = None
    origin: int | None = None
    """Of a fork: the execution whose time and randomness it shares."""

    @property
    def public_id(self) -> str:
        return execution_id_of(self.sort, self.id)


class Step(IntEnum):
    """What a journal entry is the end of."""

    RUN = 0
    PROMISE = 1
    SLEEP = 2
    EVENT = 3
    CALL = 4
    START = 5


class Entry(NamedTuple):
    """One finished step. `seq` is its position; `body` is JSON, of a failure when it `failed`."""

    seq: int
    step: Step
    name: str
    fingerprint: bytes
    failed: bool
    body: bytes
    attempts: int
    started_at: int
    at: int


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """In the order in which they ended. Clocks differ, and are set: what a branch came to later has
    ended later, whatever time it was."""
    latest: dict[int, int] = {}
    ended: dict[int, int] = {}
    found = sorted(entries, key=lambda entry: entry.seq)
    for entry in found:
        branch = entry.seq >> BRANCH_BITS
        latest[branch] = ended[entry.seq] = max(entry.at, latest.get(branch, entry.at))
    return sorted(found, key=lambda entry: (ended[entry.seq], entry.seq))


class PromiseState(IntEnum):
    PENDING = 0
    RESOLVED = 1
    REJECTED = 2
    TIMED_OUT = 3
    CANCELLED = 4


class PromiseKind(IntEnum):
    """Everything that is waited for is a promise; what settles it differs."""

    PROMISE = 0  # whoever has its id, key or token
    SLEEP = 1  # time
    EVENT = 2  # an event that fits
    CALL = 3  # the end of another execution
    RETRY = 4  # time, after an attempt that failed


class Promise(NamedTuple):
    """Something that is waited for, as read. Without an execution it was made by the API."""

    id: int
    tenant: str
    kind: PromiseKind
    name: str
    state: PromiseState
    created_at: int
    execution: int | None = None
    seq: int | None = None
    sort: Sort = Sort.WORKFLOW
    fingerprint: bytes = b""
    key: str | None = None
    key_expires_at: int | None = None
    due_at: int | None = None
    body: bytes | None = None
    """JSON: what it was resolved with, or the failure it was rejected with."""
    settled_by: str | None = None
    """The request key, the event or the execution that settled it."""
    settled_at: int | None = None
    topic: str | None = None
    condition: str | None = None
    trouble: str | None = None
    """What went wrong when the condition was last evaluated."""
    target: int | None = None
    """The execution whose end settles a CALL."""
    attempts: int = 0

    @property
    def public_id(self) -> str:
        if self.execution is None:
            return f"pr_{self.id:016x}:{self.name}"
        return f"{execution_id_of(self.sort, self.execution)}:{self.name}"


class PromisePlace(NamedTuple):
    """Where a promise id points: the promise of that number, or one of an execution by name."""

    id: int | None
    execution: int | None
    name: str


def execution_id_of(sort: Sort, number: int) -> str:
    return f"{'tk' if sort is Sort.TASK else 'wf'}_{number:016x}"


def execution_number_of(text: str) -> tuple[Sort, int] | None:
    """The inverse of `execution_id_of`; None for anything that is not the id of an execution."""
    found = _EXECUTION_ID.fullmatch(text)
    if found is None or int(found[2], 16) >= 1 << 63:
        return None
    return Sort.TASK if found[1] == "tk" else Sort.WORKFLOW, int(found[2], 16)


def promise_place_of(text: str) -> PromisePlace | None:
    """What a promise id names; None for anything that is not the id of a promise."""
    head, separator, name = text.partition(":")
    if not separator or not name:
        return None
    execution = execution_number_of(head)
    if execution is not None:
        return PromisePlace(None, execution[1], name)
    found = _ALONE_ID.fullmatch(head)
    number = int(found[1], 16) if found else 1 << 63
    return PromisePlace(number, None, name) if number < 1 << 63 else None
