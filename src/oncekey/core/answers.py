"""What a store answers to durable work, as values."""

from __future__ import annotations

from typing import Literal, NamedTuple

from oncekey.core.execution import Entry, Execution, Promise, Sort
from oncekey.core.model import Record


class Started(NamedTuple):
    """The execution is new; a RUNNING one is the asker's, with fence 1."""

    owner: int


class Existing(NamedTuple):
    """The key is taken: by this record, and the execution (or none, for an event) it stands for."""

    record: Record
    execution: Execution | None


class Owned(NamedTuple):
    """An execution that is RUNNING in the asking process, as the store has it."""

    id: int
    fence: int
    wakes: int
    sort: Sort
    name: str


class Lost(NamedTuple):
    """The fence is not the run's any more: somebody has taken it over, or ended it."""


class Advanced(NamedTuple):
    """`woken`: it was to wait, but there is something new in its journal."""

    woken: bool = False
    ended: tuple[Woken, ...] = ()
    """Executions that waited for its end."""


class Awaited(NamedTuple):
    """The promise of that position; when it is settled already, `entry` is in the journal."""

    promise: Promise
    entry: Entry | None = None
    waits: bool = False
    """Whether the execution is WAITING now."""
    child: Existing | None = None
    """The key of a CALL was taken by this one; with another fingerprint, nothing was made."""
    started: int | None = None
    """The number of the child that was made."""


class KeyTaken(NamedTuple):
    """Another promise has the key, or the name within the execution. It was not made."""

    promise: Promise


class Spawned(NamedTuple):
    """When the key was taken with another fingerprint, no start is journaled."""

    entry: Entry
    existing: Existing | None = None
    is_journaled: bool = True
    is_new: bool = False
    """Whether it was started by this very request."""


class Woken(NamedTuple):
    """Something was settled for this execution; `ready` when it is for any process to pick up."""

    execution: int
    ready: bool
    entry: Entry | None = None
    """What is new in its journal; None when it is to look itself."""
    promise: int = 0
    fence: int = 0
    """When the asking process has taken it: the fence it has now."""
    wakes: int = 0


class Settled(NamedTuple):
    """The promise was settled by this request."""

    promise: Promise
    woken: Woken | None


class AlreadySettled(NamedTuple):
    """It had been settled before, in any way; nothing is changed."""

    promise: Promise
    again: bool = False
    """By this very request key."""
    key_new: bool = True


class Parked(NamedTuple):
    """No promise has the key yet: the resolution waits for one."""

    expires_at: int
    again: bool = False


class KeyExpired(NamedTuple):
    """The key was this promise's, and its time is over."""

    promise: Promise


class RequestKeyReused(NamedTuple):
    """The request key was used for another promise."""


Resolution = Settled | AlreadySettled | Parked | KeyExpired | RequestKeyReused | None


class Ripe(NamedTuple):
    woken: list[Woken]
    ended: list[int]
    """Executions whose own time was up."""
    next_at: int | None
    """When the next promise or execution is due."""
    alone: tuple[int, ...] = ()
    """Promises whose time was up and no execution waits for."""


class Picked(NamedTuple):
    """An execution that is the asker's now, with everything a replay needs."""

    execution: Execution
    entries: list[Entry]
    promises: list[Promise]
    """What it waits for, and its retries."""


class Controlled(NamedTuple):
    """`verdict`: what became of it. `answer` is JSON, the one stored under the key."""

    verdict: Literal["done", "replayed", "failed", "failed-before", "other", "unknown"]
    answer: str = ""
    execution: Execution | None = None
    """The one that is READY or over now."""
    ended: tuple[Woken, ...] = ()
