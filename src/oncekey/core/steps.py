"""One source for blocking and async calls: verbs are steps, driven by a thread or by a loop."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Awaitable, Callable, Generator
from typing import Any, NamedTuple, TypeVar

from oncekey.core.clock import Clock
from oncekey.core.errors import ConfigurationError
from oncekey.core.ports import Request, Store
from oncekey.core.waiting import LoopWaiter, ThreadWaiter, deliver, waiter_for

T = TypeVar("T")
Steps = Generator[Any, Any, T]


class Within(NamedTuple):
    """Carry the request out in the caller's transaction."""

    transaction: Any
    request: Request


def inside(transaction: Any, request: Request) -> Request | Within:
    """The request, within the caller's transaction if there is one."""
    return request if transaction is None else Within(transaction, request)


class Call(NamedTuple):
    """Call back into the application; only a loop can drive a function that is async."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class Nap(NamedTuple):
    """Wait until the claim of that digest is concluded in this process, `seconds` at most."""

    digest: bytes
    seconds: float


def drive(steps: Steps[T], perform: Callable[[Any], Any]) -> T:
    """Carry each step out with `perform`; whatever that raises is for the steps to decide about."""
    try:
        step = next(steps)
        while True:
            try:
                answer = perform(step)
            except BaseException as error:  # noqa: BLE001 - thrown into the steps
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as stop:
        value: T = stop.value
        return value


async def adrive(steps: Steps[T], perform: Callable[[Any], Awaitable[Any]]) -> T:
    """The same on the running event loop."""
    try:
        step = next(steps)
        while True:
            try:
                answer = await perform(step)
            except BaseException as error:  # noqa: BLE001 - thrown into the steps
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as stop:
        value: T = stop.value
        return value


class Pauses:
    """How long to wait before looking again at a claim.

    The end of one that this process holds wakes whoever waits; the end of another's does not.
    """

    LONGEST = 0.250
    _FIRST, _GROWTH = 0.010, 1.5

    def __init__(self, clock: Clock, timeout: float) -> None:
        self._clock = clock
        self._deadline = clock.steady() + timeout * 1000
        self._pause = self._FIRST

    def next(self, *, ours: bool = False) -> float | None:
        """Seconds until the next look; None when the time is up."""
        left = (self._deadline - self._clock.steady()) / 1000
        if left <= 0:
            return None
        if ours:
            return min(self.LONGEST, left)
        pause, self._pause = self._pause, min(self._pause * self._GROWTH, self.LONGEST)
        return min(pause, left)


class Watchers(dict[bytes, list[ThreadWaiter | LoopWaiter]]):
    """Who waits for a claim to be concluded in this process, by its digest."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()

    def add(self, digest: bytes, waiter: ThreadWaiter | LoopWaiter) -> None:
        with self._lock:
            self.setdefault(digest, []).append(waiter)

    async def join(self, digest: bytes) -> Any:
        """Wait on the running loop until the claim is concluded; None when that takes longer than
        it is good not to ask the store. Those who wait for one claim share one timer."""
        waiter = waiter_for(None)
        if digest not in self:
            waiter.loop.call_later(Pauses.LONGEST, self.wake, digest, None)
        self.add(digest, waiter)
        try:
            return await waiter.future
        except BaseException:
            self.remove(digest, waiter)
            raise

    def forget(self) -> None:
        """In a forked child: nobody here waits."""
        self.clear()
        self._lock = threading.Lock()

    def wake(self, digest: bytes, answer: Any) -> None:
        with self._lock:
            waiters = self.pop(digest, [])
        deliver([(waiter, answer) for waiter in waiters])

    def remove(self, digest: bytes, waiter: ThreadWaiter | LoopWaiter) -> None:
        with self._lock:
            waiters = self.get(digest, [])
            if waiter in waiters:
                waiters.remove(waiter)
            if not waiters:
                self.pop(digest, None)


class Driver:
    """Carries steps out against one store."""

    def __init__(
        self, store: Store, watchers: Watchers, orphan: Callable[[Any, Any], None]
    ) -> None:
        self._store = store
        self._watchers = watchers
        self._orphan = orphan

    def run(self, steps: Steps[T]) -> T:
        """Drive by blocking this thread."""
        try:
            step = next(steps)
            while True:
                try:
                    answer = self._answer(step)
                except Exception as error:  # noqa: BLE001 - thrown into the steps below
                    answer = error
                if isinstance(answer, BaseException):
                    step = steps.throw(answer)
                else:
                    step = steps.send(answer)
        except StopIteration as stop:
            value: T = stop.value
            return value
        finally:
            # A driver that is interrupted lets the steps clean up behind them.
            steps.close()

    async def arun(self, steps: Steps[T]) -> T:
        """Drive on the running event loop."""
        try:
            step = next(steps)
            while True:
                try:
                    answer = await self._aanswer(step)
                except Exception as error:  # noqa: BLE001 - thrown into the steps below
                    answer = error
                if isinstance(answer, BaseException):
                    step = steps.throw(answer)
                else:
                    step = steps.send(answer)
        except StopIteration as stop:
            value: T = stop.value
            return value
        finally:
            # A driver that is interrupted lets the steps clean up behind them.
            steps.close()

    def _answer(self, step: Any) -> Any:
        match step:
            case Call(function, arguments):
                result = function(*arguments)
                if inspect.isawaitable(result):
                    raise ConfigurationError("an async hook needs the async form of this call")
                return result
            case Nap(digest, seconds):
                waiter = ThreadWaiter()
                self._watchers.add(digest, waiter)
                try:
                    return waiter.wait(seconds)
                finally:
                    self._watchers.remove(digest, waiter)
            case Within(transaction, request):
                return self._store.ask_within(transaction, request)
            case _:
                return self._ask(step)

    async def _aanswer(self, step: Any) -> Any:
        match step:
            case Call(function, arguments):
                result = function(*arguments)
                return await result if inspect.isawaitable(result) else result
            case Nap(digest, seconds):
                return await self._anap(digest, seconds)
            case Within(transaction, request):
                return await self._store.aask_within(transaction, request)
            case _:
                waiter = self.send(step)
                try:
                    return await waiter.future
                except BaseException:
                    waiter.desert()
                    raise

    def _ask(self, request: Request) -> Any:
        waiter = ThreadWaiter()
        try:
            self._store.submit(request, waiter)
            return waiter.wait()
        except BaseException:
            waiter.desert(functools.partial(self._orphan, request))
            raise

    def send(self, request: Request) -> LoopWaiter:
        """One request to the store, from an event loop: its answer is the waiter's future."""
        waiter = waiter_for(request, self._orphan)
        self._store.submit(request, waiter)
        return waiter

    async def _anap(self, digest: bytes, seconds: float) -> Any:
        waiter = waiter_for(None)
        self._watchers.add(digest, waiter)
        timer = waiter.loop.call_later(seconds, waiter.resolve, None)
        try:
            return await waiter.future
        finally:
            timer.cancel()
            self._watchers.remove(digest, waiter)
