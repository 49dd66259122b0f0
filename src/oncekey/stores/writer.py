"""Group commit: everything that waits at this moment goes into one transaction.

Callers of either colour append to one list. A writer thread takes the whole list, commits it and
delivers the answers; meanwhile the next group gathers. Nobody waits for a timer.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from oncekey.core.errors import LedgerClosed, StoreError, StoreUnavailable
from oncekey.core.model import make
from oncekey.core.ports import (
    Abandon,
    Committed,
    Insert,
    Release,
    Replace,
    Request,
    Settle,
    Take,
    Waiter,
)
from oncekey.core.waiting import deliver
from oncekey.core.work import Start, Withdraw

log = logging.getLogger("oncekey")

# How long a caller waits for a store that is away before it is told; the writer tries on after.
_PATIENCE = 10.0
_PAUSE_AFTER_FAILURE = 0.2
# A group may have to wait for a lock as long as a database lets it; longer than that is no waiting.
_STUCK = 20.0
_JOIN_TIMEOUT = 10.0
_FOREVER = float("inf")


# How a claim ended must be written, however long that takes.
_ENDINGS = (Settle, Release, Abandon, Withdraw)
# A takeover that may not have been committed is taken back by its fence, which the next takeover by
# this process would have as well: they go one after the other, through the first writer.
_IN_TURN = (Take, Abandon)


class Job(NamedTuple):
    request: Any
    waiter: Waiter
    deadline: float | None = None
    """Until when the waiter is kept waiting; set by the first failure."""


class Session(Protocol):
    """One connection, used by one writer thread."""

    def commit(self, requests: list[Request]) -> list[Any]:
        """Carry all requests out durably and answer each. Raises `StoreUnavailable` for all."""
        ...

    def beat(self) -> None:
        """Tell other processes that this one is alive."""
        ...

    def close(self) -> None: ...


class Writer:
    """The list of what waits, and the threads that commit it."""

    def __init__(
        self,
        connect: Callable[[], Session],
        *,
        threads: int = 1,
        heartbeat: float = 5.0,
        committed: Committed | None = None,
    ) -> None:
        self._heartbeat = heartbeat
        self._pending: list[Job] = []
        self._since = 0.0
        """When the oldest of them began to wait; 0 when nothing does."""
        self._lock = threading.Lock()
        self._sleepers: dict[int, threading.Lock] = {}
        """By number of the writer thread that sleeps."""
        self._closing = False
        self._lines = [_Line(connect, committed) for _ in range(threads)]
        self._threads = [
            threading.Thread(target=self._run, args=(number,), daemon=True, name="oncekey-writer")
            for number in range(threads)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def submit(self, request: Any, waiter: Waiter) -> None:
        with self._lock:
            if self._closing:
                deliver([(waiter, LedgerClosed())])
                return
            if not self._pending:
                self._since = self._since or time.monotonic()
            self._pending.append(make(Job, (request, waiter, None)))
            sleeper = self._sleeper_for(request)
            if sleeper is None:
                if time.monotonic() - self._since > _STUCK:
                    self._refuse_claims()
                return
        sleeper.release()

    def _sleeper_for(self, request: Any) -> threading.Lock | None:
        """A writer that may carry the request out, if one of those sleeps."""
        number = 0 if isinstance(request, _IN_TURN) else next(reversed(self._sleepers), 0)
        return self._sleepers.pop(number, None)

    def close(self) -> None:
        """Commit what is waiting, then stop."""
        with self._lock:
            self._closing = True
            sleepers, self._sleepers = self._sleepers, {}
        for sleeper in sleepers.values():
            sleeper.release()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(_JOIN_TIMEOUT)

    def pause(self) -> None:
        """Finish the groups under way and close the connections; the rest waits for `resume`."""
        for line in self._lines:
            line.pause()

    def resume(self) -> None:
        for line in self._lines:
            line.resume()

    def _refuse_claims(self) -> None:
        """Nobody takes what waits: somebody stands still who keeps every writer from the store."""
        error = StoreUnavailable("the store has been busy for too long")
        endings = [job for job in self._pending if isinstance(job.request, _ENDINGS)]
        claims = [job for job in self._pending if not isinstance(job.request, _ENDINGS)]
        self._pending = endings
        deliver([(job.waiter, error) for job in claims])

    # -- the writer's own thread ---------------------------------------------------------

    def _run(self, number: int) -> None:
        line = self._lines[number]
        # The first writer beats for the process; the others only carry groups.
        beats_at = time.monotonic() + self._heartbeat if number == 0 else None
        while True:
            jobs = self._take(number, beats_at)
            if beats_at is not None and time.monotonic() >= beats_at:
                beats_at = time.monotonic() + self._heartbeat
                with line.turn:
                    line.beat()
            if jobs:
                with line.turn:
                    unfinished = line.commit(jobs)
                self._retry_later(unfinished)
            elif self._closing:
                line.close()
                return

    def _take(self, number: int, wake_at: float | None) -> list[Job]:
        """What waits for this writer; sleeps when nothing does, until its next heartbeat."""
        with self._lock:
            jobs = self._waiting_for(number)
            if jobs or self._closing:
                return jobs
            sleeper = self._sleepers[number] = threading.Lock()
            sleeper.acquire()
        sleeper.acquire(timeout=-1 if wake_at is None else max(0.0, wake_at - time.monotonic()))
        with self._lock:
            if self._sleepers.get(number) is sleeper:
                del self._sleepers[number]
            return self._waiting_for(number)

    def _waiting_for(self, number: int) -> list[Job]:
        jobs, self._pending = self._pending, []
        if number:
            self._pending = [job for job in jobs if isinstance(job.request, _IN_TURN)]
            jobs = [job for job in jobs if not isinstance(job.request, _IN_TURN)]
        if not self._pending:
            self._since = 0.0
        return jobs

    def _retry_later(self, unfinished: list[Job]) -> None:
        """Outcomes are not lost when the store is away: they go first when it is back."""
        if not unfinished:
            return
        if self._closing:
            deliver([(job.waiter, StoreUnavailable()) for job in unfinished])
            return
        time.sleep(_PAUSE_AFTER_FAILURE)
        with self._lock:
            self._since = self._since or time.monotonic()
            self._pending[:0] = unfinished
            woken = [self._sleeper_for(job.request) for job in unfinished]
        for sleeper in woken:
            if sleeper is not None:
                sleeper.release()


class _Line:
    """A session that is made again when it breaks. Whoever uses it has the `turn`."""

    def __init__(self, connect: Callable[[], Session], committed: Committed | None = None) -> None:
        self._connect = connect
        self._committed = committed
        self._session: Session | None = None
        self.turn = threading.Lock()

    def pause(self) -> None:
        self.turn.acquire()
        self._drop()

    def resume(self) -> None:
        self.turn.release()

    def commit(self, jobs: list[Job]) -> list[Job]:
        """Answers the jobs; gives back those that must be tried again."""
        sent = False
        began = time.perf_counter()
        try:
            session = self._open()
            sent = True
            answers = session.commit([job.request for job in jobs])
        except StoreError as error:
            self._drop()
            return _refuse(jobs, error, sent)
        except Exception as error:
            self._drop()
            if len(jobs) > 1:
                # One bad request must not take the others of its group down.
                return [left for job in jobs for left in self.commit([job])]
            log.exception("a request to the store failed")
            failure = StoreUnavailable(f"the store failed: {type(error).__name__}")
            deliver([(jobs[0].waiter, failure)])
            return _undo(jobs[0].request)
        deliver(zip([job.waiter for job in jobs], answers, strict=True))
        if self._committed is not None:
            self._committed(len(jobs), time.perf_counter() - began)
        return []

    def beat(self) -> None:
        try:
            self._open().beat()
        except Exception as error:  # noqa: BLE001 - the writer must live on, whatever a beat meets
            self._drop()
            log.warning("no heartbeat: %s", error)

    def close(self) -> None:
        if self._session is not None:
            self._session.close()

    def _open(self) -> Session:
        if self._session is None:
            self._session = self._connect()
        return self._session

    def _drop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()


def _refuse(jobs: list[Job], error: StoreError, sent: bool) -> list[Job]:
    """Claims fail at once: nothing has run. How a claim ended must be written, so that waits.

    `sent`: the store may have carried them out before it failed.
    """
    now = time.monotonic()
    answers: list[tuple[Waiter, Any]] = []
    kept: list[Job] = []
    for job in jobs:
        if not isinstance(job.request, _ENDINGS):
            answers.append((job.waiter, error))
            kept += _undo(job.request) if sent else []
        elif job.deadline is None:
            kept.append(job._replace(deadline=now + _PATIENCE))
        elif now < job.deadline:
            kept.append(job)
        else:
            answers.append((job.waiter, error))
            kept.append(Job(job.request, _NOBODY, _FOREVER))
    deliver(answers)
    return kept


def _undo(request: Any) -> list[Job]:
    """A claim that was refused may have been committed all the same, and an outcome that cannot be
    written leaves its claim behind: neither may stay held."""
    match request:
        case Insert(id=number) | Replace(insert=Insert(id=number)):
            return [Job(Release(number, 1), _NOBODY, _FOREVER)]
        case Take(id=number, fence=fence):
            return [Job(Abandon(number, fence + 1), _NOBODY, _FOREVER)]
        case Settle(id=number, fence=fence):
            return [Job(Abandon(number, fence), _NOBODY, _FOREVER)]
        case Start(execution=execution, insert=None):
            # With a key others may have been told of it by now: there it stays, and is found.
            return [Job(Withdraw(execution.id), _NOBODY, _FOREVER)]
        case _:
            return []


class _Nobody:
    """The waiter of a write whose caller was told already."""

    loop = None

    def resolve(self, answer: Any) -> None: ...


_NOBODY = _Nobody()
