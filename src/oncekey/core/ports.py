"""What the ledger asks of a store. Requests and answers are values, each answered exactly once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from oncekey.core.looking import Looked
from oncekey.core.model import Operation, Outcome, Record, State


class Insert(NamedTuple):
    """Claim a key nobody has."""

    id: int
    digest: bytes
    operation: Operation
    created_at: int
    expires_at: int


class Take(NamedTuple):
    """Take over an unsettled claim, if nobody was faster: the fence must still be the one seen."""

    id: int
    digest: bytes
    fence: int


class Replace(NamedTuple):
    """Delete an expired record, if it is still the one seen, and claim its key anew."""

    old_id: int
    old_fence: int
    insert: Insert


class Settle(NamedTuple):
    """Write the outcome, if the fence still holds."""

    id: int
    fence: int
    outcome: Outcome
    completed_at: int
    expires_at: int


class Release(NamedTuple):
    """Give the key back, if the fence still holds."""

    id: int
    fence: int


class Abandon(NamedTuple):
    """Leave the claim without an owner, as a crash would: the takeover rule decides the rest. Only
    one of the asking process's own: what it is unsure to have taken may be another's by now."""

    id: int
    fence: int


def giving_back(number: int, fence: int) -> Release | Abandon:
    """What ends a claim whose run has failed. One that was taken over keeps its request: whoever
    had it before may have done it, and another request under its key would come on top."""
    return Release(number, fence) if fence == 1 else Abandon(number, fence)


class Peek(NamedTuple):
    """Read one record, by digest or by number."""

    digest: bytes | None
    id: int = 0


class Purge(NamedTuple):
    """Forget a key and its outcome."""

    digest: bytes


class Held(NamedTuple):
    """The claim is the caller's, with this fence."""

    fence: int


class Found(NamedTuple):
    """Somebody has the key; `lapsed` says whether its holder is gone."""

    record: Record
    lapsed: bool


class Gone(NamedTuple):
    """The record seen a moment ago is not there any more: ask again."""


Request = Insert | Take | Replace | Settle | Release | Abandon | Peek | Purge
Answer = Held | Found | Gone | bool | None | BaseException


class Waiter(Protocol):
    """Whoever waits for an answer, in a thread or on an event loop."""

    @property
    def loop(self) -> Any: ...

    def resolve(self, answer: Any) -> None: ...


class Query(NamedTuple):
    """A page of records, newest first: keys that start with `prefix`, numbers below `before` and
    above `after`, namespaces that start with `within`, as `t-acme:` of a tenant. With `look` only
    so many are looked at."""

    state: State | None = None
    prefix: str | None = None
    namespace: str | None = None
    before: int | None = None
    limit: int = 50
    within: str | None = None
    endpoint: str | None = None
    after: int = -1
    key: str | None = None
    look: int | None = None


class Store(Protocol):
    """Claims and outcomes that survive. One conformance suite holds for every store."""

    committed: Committed | None
    """Told of every group that is written, where that is set."""

    def open(self, beat: Beat, fault: Faults | None = None) -> None:
        """Be ready; call `beat` with each heartbeat, `fault` at each point that can be killed."""
        ...

    def submit(self, request: Any, waiter: Waiter) -> None:
        """Queue a request: one of these, of `work.py` or of another room that keeps something. The
        waiter is resolved after the commit that covers it."""
        ...

    def ask_within(self, transaction: Any, request: Request) -> Answer:
        """Carry a request out through the caller's own open transaction."""
        ...

    async def aask_within(self, transaction: Any, request: Request) -> Answer: ...

    def purge_epoch(self) -> int | None:
        """Changes with every purge; None when remembered answers may not be trusted."""
        ...

    def list(self, query: Query, now: int) -> Looked[Found]:
        """A page of records. Their outcomes have neither headers nor body."""
        ...

    def read(self, request: Any) -> Any:
        """Answer a request that changes nothing, beside what is submitted: whoever claims meanwhile
        does not wait for it. What was committed before is seen."""
        ...

    def sweep(self, now: int, batch: int) -> int:
        """Delete at most `batch` expired records; answers how many."""
        ...

    def count_expired(self, now: int) -> int: ...

    def sweep_due(self, now: int, interval: int) -> bool:
        """Whether no process has swept for `interval` ms; if so, this one has taken the turn."""
        ...

    def retention(self) -> dict[str, float]: ...

    def set_retention(self, name: str, seconds: float) -> None: ...

    def ring(self) -> None:
        """Tell every other process on this store that something became READY, or has ended. Never
        waits and never fails; a ring may be lost when a process or the store goes away."""
        ...

    def listen(self, heard: Callable[[], None]) -> Callable[[], None]:
        """Call `heard`, in any thread, once others are heard, then whenever one of them has rung:
        once for rings that follow closely, and after each time when rings may have been missed.
        Answers what stops it. A forked child listens to nothing."""
        ...

    def close(self) -> None:
        """Retire this process: what it still holds lapses at once."""
        ...


class Codec(Protocol):
    """Values of functions, as JSON."""

    def encode(self, value: Any) -> bytes: ...

    def decode(self, body: bytes, kind: Any) -> Any: ...


Beat = Callable[[Mapping[str, float]], int]
"""Given the retention classes in the store; answers the lowest operation number still held."""
Progress = Callable[[int, int], None]
"""Told how many are done, of how many."""
Committed = Callable[[int, float], None]
"""Told how many requests shared a commit, and how many seconds it took."""
Faults = Callable[[str], None]
"""Told the name of the point the code has reached."""
