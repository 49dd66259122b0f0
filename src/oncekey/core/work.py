"""What durable work asks of a store: values, each carried out in one transaction, answered once."""

from __future__ import annotations

from typing import Literal, NamedTuple

from oncekey.core.execution import (
    Entry,
    Execution,
    Promise,
    PromiseKind,
    PromiseState,
    Sort,
    Status,
)
from oncekey.core.ports import Insert

# The owner of a claim that an execution or a promise holds: no process's death lets it lapse.
ENGINE = -2

Action = Literal["cancel", "resume", "fork"]


# -- what is asked ---------------------------------------------------------------------------


class Start(NamedTuple):
    """Make an execution, and with `insert` claim its key: both have one number.

    RUNNING: it is the asking process's. Answer: Started, or Existing when the key is taken.
    """

    execution: Execution
    insert: Insert | None = None


class Withdraw(NamedTuple):
    """Undo a start nobody was told of. Answer: whether there was one."""

    id: int


class Ending(NamedTuple):
    """SUCCEEDED, FAILED, CANCELLED, or PAUSED, which is no end: then nothing is settled."""

    status: Status
    result: bytes
    keep: int
    """How long it is kept, in ms."""
    keyed: bool = False
    plain: bool = False
    """Whether it made no promises and gives no key back: then nothing else has to be tidied."""


class Advance(NamedTuple):
    """What a run has done: journal entries, and maybe its ending. Answer: Advanced, or Lost.

    `waits` is the number of wakes the run has seen, when it has nothing left to do but wait: it is
    WAITING from then on, unless it was woken meanwhile.
    """

    id: int
    fence: int
    now: int
    entries: tuple[Entry, ...] = ()
    ending: Ending | None = None
    waits: int | None = None


class Await(NamedTuple):
    """Make a promise that an execution waits for, unless its position has one already.

    `insert` claims its key, `token` is the digest of its token, `start` the child of a CALL. A
    RETRY replaces the one before it, and is replaced by whatever else comes to its position. What
    the run has done is journaled in any case but Lost. Answer: Awaited, KeyTaken, Gone or Lost.
    """

    advance: Advance
    promise: Promise
    insert: Insert | None = None
    token: bytes | None = None
    start: Start | None = None


class AddToken(NamedTuple):
    """One more token for the promise an execution made at `seq`. Answer: Advanced, or Lost."""

    id: int
    fence: int
    seq: int
    token: bytes


class Spawn(NamedTuple):
    """Start an execution and journal its id (START), both or neither. Answer: Spawned, or Lost."""

    advance: Advance
    start: Start
    entry: Entry
    """Its body is replaced by the id of the execution that has the key."""


class Make(NamedTuple):
    """Make a promise no execution waits for. Answer: Awaited or KeyTaken."""

    promise: Promise
    insert: Insert | None = None
    token: bytes | None = None


class Target(NamedTuple):
    """Which promise is meant. Exactly one of `id`, `execution` with `name`, `digest`, `token`."""

    tenant: str
    id: int | None = None
    execution: int | None = None
    name: str | None = None
    digest: bytes | None = None
    """Of the promise's key."""
    token: bytes | None = None
    """The digest of its token."""


class Park(NamedTuple):
    """Keep the resolution when the key is unknown, until `expires_at`."""

    digest: bytes
    key: str
    expires_at: int


class Resolve(NamedTuple):
    """Settle a promise. `insert` claims the request's own key. Answer: one of `Resolution`.

    `adopt`: when what waits for it is one of these, the asking process takes it at once.
    """

    target: Target
    state: PromiseState
    body: bytes
    now: int
    settled_by: str | None = None
    insert: Insert | None = None
    park: Park | None = None
    adopt: tuple[tuple[Sort, str], ...] = ()


class Match(NamedTuple):
    """Settle the waits an event fits, and note what went wrong for others. Answer: list[Woken]."""

    tenant: str
    event: int
    promises: tuple[int, ...]
    body: bytes
    now: int
    troubles: tuple[tuple[int, str], ...] = ()


class Event(NamedTuple):
    id: int
    tenant: str
    topic: str
    data: bytes
    headers: bytes
    created_at: int
    expires_at: int
    matched: bool = False
    """Whether every wait it could fit has been looked at."""


def event_id_of(number: int) -> str:
    return f"ev_{number:016x}"


class Publish(NamedTuple):
    """Keep an event; with `insert` claim its key. Answer: True, or Existing when it is taken."""

    event: Event
    insert: Insert | None = None


class Matched(NamedTuple):
    """Every wait the event could fit has been looked at. Answer: how many it settled."""

    event: int


class Due(NamedTuple):
    """Settle at most `limit` promises, and end executions, whose time has come. Answer: Ripe."""

    now: int
    late: bytes
    """The failure a promise that was not settled in time ends with."""
    overdue: bytes
    """The failure an execution that was not over in time ends with."""
    limit: int = 100


class Rewind(NamedTuple):
    """The clock has been set back to `now`: whatever began later than that begins now, and is due
    after as long as was asked for. Answer: how many began anew."""

    now: int
    close: int
    """Clocks of machines are as close as that; what began so little later is left alone."""


class PickUp(NamedTuple):
    """Take READY executions, and RUNNING ones of processes that are gone. Answer: list[Picked]."""

    names: tuple[tuple[Sort, str], ...]
    limit: int
    now: int
    only: int | None = None
    """Just this one."""


class HandBack(NamedTuple):
    """Executions that are RUNNING here, for others to pick up. Answer: how many."""

    held: tuple[tuple[int, int], ...]
    """Number and fence of each."""


class Mine(NamedTuple):
    """What the asking process has as RUNNING. Answer: list[Owned]."""


class Load(NamedTuple):
    """What an execution has in its journal by now. Answer: Picked, or Lost."""

    id: int
    fence: int


class Control(NamedTuple):
    """Cancel, resume or fork, under a request key of its own. Answer: Controlled."""

    tenant: str
    request_key: str
    action: Action
    execution: int
    now: int
    parameters: str = ""
    """JSON, equal for equal parameters."""
    from_step: int = 0
    fork: int = 0
    """The number of the execution a fork makes."""
    failure: bytes = b""
    """What a cancelled execution ends with."""


class Forget(NamedTuple):
    """Delete at most `limit` of what durable work left that is past its time. Answer: how many."""

    now: int
    controls_before: int
    limit: int = 500


class Know(NamedTuple):
    """Executions of these names can be started from now on. Answer: True."""

    names: tuple[tuple[Sort, str], ...]
    now: int


# -- reads -----------------------------------------------------------------------------------


class FindExecution(NamedTuple):
    """Answer: Execution or None."""

    tenant: str | None
    id: int


class ReadJournal(NamedTuple):
    """Answer: list[Entry], in the order in which the steps ended."""

    id: int


class FindPromise(NamedTuple):
    """Answer: Promise or None."""

    target: Target


class ListExecutions(NamedTuple):
    """A page, newest first; with `look` only so many are looked at. Answer: Looked[Execution]."""

    tenant: str | None
    status: Status | None = None
    name: str | None = None
    sort: Sort | None = None
    before: int | None = None
    limit: int = 50
    look: int | None = None


class ListPromises(NamedTuple):
    """A page, newest first; with `look` only so many are looked at. Answer: Looked[Promise].

    What only time or code settles is left out, unless asked for by kind or by execution.
    """

    tenant: str | None
    state: PromiseState | None = None
    kind: PromiseKind | None = None
    execution: int | None = None
    before: int | None = None
    limit: int = 50
    key: str | None = None
    look: int | None = None


class Waits(NamedTuple):
    """A page of pending waits for events of a topic, oldest first. Answer: list[Promise]."""

    tenant: str
    topic: str
    after: int
    until: int
    """Made at this time or earlier."""
    limit: int = 200


class Events(NamedTuple):
    """A page of the events of a topic since a time, oldest first. Answer: list[Event]."""

    tenant: str
    topic: str
    since: int
    after: int = 0
    limit: int = 200


class ListEvents(NamedTuple):
    """A page, newest first; with `look` only so many are looked at. Answer: Looked[Event]."""

    tenant: str | None
    topic: str | None = None
    limit: int = 50
    before: int | None = None
    look: int | None = None


class Unmatched(NamedTuple):
    """Events that were kept before a time and not matched to the end. Answer: list[Event]."""

    before: int
    limit: int = 200


class Known(NamedTuple):
    """Answer: list of (sort, name)."""


class Lives(NamedTuple):
    """Whether the process with this number, which owns what is RUNNING, is alive. Answer: bool."""

    owner: int


Work = (
    Start
    | Withdraw
    | Advance
    | Await
    | AddToken
    | Spawn
    | Make
    | Resolve
    | Match
    | Publish
    | Matched
    | Due
    | Rewind
    | PickUp
    | HandBack
    | Mine
    | Load
    | Control
    | Forget
    | Know
    | FindExecution
    | ReadJournal
    | FindPromise
    | ListExecutions
    | ListPromises
    | Waits
    | Events
    | ListEvents
    | Unmatched
    | Known
    | Lives
)
