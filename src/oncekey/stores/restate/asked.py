"""What the objects of durable work ask of each other, beside what is asked of a store."""

from __future__ import annotations

from typing import NamedTuple

from oncekey.core.execution import Entry, Execution, Promise, PromiseState, Sort
from oncekey.core.model import Link, Outcome, Record
from oncekey.core.ports import Insert


class Creation(NamedTuple):
    """An execution to be made; `digest` is that of its key."""

    execution: Execution
    owner: int
    digest: bytes | None = None
    entries: tuple[Entry, ...] = ()
    parent: int | None = None
    """The execution that makes it, and the promise by which that waits for its end."""
    promise: int = 0
    seq: int = 0
    """Where a parent that does not wait for it has journaled it."""


class Claiming(NamedTuple):
    """Claim a key for durable work; `outcome` when it is over in the same breath."""

    insert: Insert
    link: Link | None = None
    outcome: Outcome | None = None
    creation: Creation | None = None
    """What is made with it."""
    instead: int | None = None
    """The number of a claim that gives way."""


class Parking(NamedTuple):
    """A resolution that came before its promise."""

    state: PromiseState
    body: bytes
    settled_by: str | None
    expires_at: int
    digest: bytes | None
    """Of the request's own key, with the number of its claim."""
    request: int = 0
    taken_by: int = 0
    """The promise that it is delivered to."""


class Claimed(NamedTuple):
    """`record` has the key; without one it is the claimer's. `parked` is to be delivered."""

    record: Record | None = None
    parked: Parking | None = None
    nonce: str | None = None
    """By which what is made with it was asked for; None when it was the claimer's before."""


class Settling(NamedTuple):
    """Settle a promise from outside: that of a number, or of a name."""

    tenant: str
    number: int | None
    name: str | None
    state: PromiseState
    body: bytes
    now: int
    settled_by: str | None = None
    adopt: tuple[tuple[Sort, str], ...] = ()
    owner: int = 0
    is_first: bool = False
    """Whether it is known that nothing came for its key before."""


class Unregistered(NamedTuple):
    """The key of a promise may not know of it yet, or what came for that before may be on its
    way: with that, it is settled first."""

    digest: bytes


class Told(NamedTuple):
    """Something a promise waits for has happened."""

    promise: int
    state: PromiseState
    body: bytes
    told_by: str | None
    now: int


class Position(NamedTuple):
    """What a position of a run has already; `is_registered` says so of its promise."""

    promise: Promise | None = None
    entry: Entry | None = None
    is_registered: bool = True


class Registered(NamedTuple):
    """Whatever a promise needs elsewhere is there. `told`: it is settled with this at once."""

    fence: int
    promise: int
    now: int
    owner: int
    waits: int | None = None
    told: Told | None = None
