"""Callers of an idempotent API: what they want done is captured with a key, and done once."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from oncekey.client.backoff import Backoff
from oncekey.client.dialect import ONCEKEY, Dialect
from oncekey.client.happenings import Captured, Happening
from oncekey.client.intent import AsyncIntent, Intent
from oncekey.client.intents import Intents, MemoryIntents, Record
from oncekey.client.request import thaw
from oncekey.client.sending import Keep, Rest, Send, Steps, Terms
from oncekey.client.sqlite.intents import SqliteIntents
from oncekey.core.clock import Clock, SystemClock
from oncekey.core.errors import ConfigurationError
from oncekey.core.key import check_name

T = TypeVar("T")

DAY = 24 * 3600.0
_TIMEOUT = 30.0
_BACKOFF = Backoff()
# What would fail again in the same way.
_OURS = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)


class Caller:
    """What both colours have in common. See `Client`."""

    def __init__(
        self,
        base_url: str,
        intents: Intents | str | Path | None,
        terms: dict[str, Any],
        draw: Callable[[], object],
    ) -> None:
        self.origin = str(httpx.URL(base_url)).rstrip("/")
        self.terms = Terms(intents=intents_of(intents), **terms)
        self._draw = draw

    def _capture(self, name: str) -> Record:
        terms, now = self.terms, self.terms.clock.now()
        before = now - round(terms.remember * 1000)
        key = str(self._draw())
        record = terms.intents.capture(self.origin, check_name(name), key, now, before)
        if record.key == key:
            terms.tell(Captured(record.name, key))
        return record


class Client(Caller):
    """For blocking code. `options` are those of `httpx.Client`: headers, auth, timeout, …

    `intents` is where keys are kept until answers are known: a file (`"intents.db"` or
    `"sqlite:///intents.db"`), or memory. A finished intent is remembered for `remember` seconds:
    asked for again, it gives the same answer without a request. `safe_for` is how long the server
    keeps keys; an older intent is not sent again by itself. `on_event` is told what happens.
    """

    def __init__(
        self,
        base_url: str = "",
        *,
        intents: Intents | str | Path | None = None,
        backoff: Backoff = _BACKOFF,
        dialect: Dialect = ONCEKEY,
        remember: float = DAY,
        safe_for: float = DAY,
        on_event: Callable[[Happening], object] | None = None,
        clock: Clock | None = None,
        sleep: Callable[[float], object] = time.sleep,
        random: Callable[[], float] = random.random,
        draw: Callable[[], object] = uuid.uuid4,
        http: httpx.Client | None = None,
        **options: Any,
    ) -> None:
        _check_http(http, options)
        base_url = base_url or str(http.base_url if http else "")
        terms = _terms(dialect, backoff, remember, safe_for, clock, random, on_event)
        super().__init__(base_url, intents, terms, draw)
        self._owns = http is None
        self.http = http or httpx.Client(**{"base_url": base_url, "timeout": _TIMEOUT, **options})
        self._sleep = sleep

    def intent(self, name: str) -> Intent:
        """Capture what is wanted, under your own name for it: `checkout:42`. The same name again,
        also after a restart, is the same intent with the same key."""
        return Intent(self, self._capture(name))

    def pending(self) -> list[Intent]:
        """The intents of this server whose answers are not known, oldest first."""
        return [Intent(self, each) for each in self.terms.intents.pending(self.origin)]

    def drive(self, steps: Steps[T]) -> T:
        """Carry out the steps of a walk by blocking this thread."""
        try:
            step = next(steps)
            while True:
                try:
                    answer = self._carry_out(step)
                except Exception as error:  # noqa: BLE001 - the steps decide what follows from it
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as stop:
            value: T = stop.value
            return value

    def _carry_out(self, step: Send | Rest | Keep) -> Any:
        match step:
            case Send():
                try:
                    return self.http.send(thaw(self.http, self.terms.dialect, step))
                except _OURS:
                    raise
                except httpx.TransportError as error:
                    return error
            case Rest(seconds):
                return self._sleep(seconds)
            case Keep(function, arguments):
                return function(*arguments)

    def close(self) -> None:
        self.terms.intents.close()
        if self._owns:
            self.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class AsyncClient(Caller):
    """As `Client`, for async code: whatever asks the server is awaited. `options` are those of
    `httpx.AsyncClient`."""

    def __init__(
        self,
        base_url: str = "",
        *,
        intents: Intents | str | Path | None = None,
        backoff: Backoff = _BACKOFF,
        dialect: Dialect = ONCEKEY,
        remember: float = DAY,
        safe_for: float = DAY,
        on_event: Callable[[Happening], object] | None = None,
        clock: Clock | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        random: Callable[[], float] = random.random,
        draw: Callable[[], object] = uuid.uuid4,
        http: httpx.AsyncClient | None = None,
        **options: Any,
    ) -> None:
        _check_http(http, options)
        base_url = base_url or str(http.base_url if http else "")
        terms = _terms(dialect, backoff, remember, safe_for, clock, random, on_event)
        super().__init__(base_url, intents, terms, draw)
        self._owns = http is None
        self.http = http or httpx.AsyncClient(
            **{"base_url": base_url, "timeout": _TIMEOUT, **options}
        )
        self._sleep = sleep

    def intent(self, name: str) -> AsyncIntent:
        """See `Client.intent`. Asks nobody, and does not wait for the disk."""
        return AsyncIntent(self, self._capture(name))

    def pending(self) -> list[AsyncIntent]:
        """See `Client.pending`."""
        return [AsyncIntent(self, each) for each in self.terms.intents.pending(self.origin)]

    async def drive(self, steps: Steps[T]) -> T:
        """Carry out the steps of a walk on the running event loop."""
        try:
            step = next(steps)
            while True:
                try:
                    answer = await self._carry_out(step)
                except Exception as error:  # noqa: BLE001 - the steps decide what follows from it
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as stop:
            value: T = stop.value
            return value

    async def _carry_out(self, step: Send | Rest | Keep) -> Any:
        match step:
            case Send():
                try:
                    return await self.http.send(thaw(self.http, self.terms.dialect, step))
                except _OURS:
                    raise
                except httpx.TransportError as error:
                    return error
            case Rest(seconds):
                return await self._sleep(seconds)
            case Keep(function, arguments):
                return await asyncio.to_thread(function, *arguments)

    async def aclose(self) -> None:
        self.terms.intents.close()
        if self._owns:
            await self.http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()


def intents_of(place: Intents | str | Path | None) -> Intents:
    """Where intents are kept: a file, memory, or a store of the caller's own."""
    match place:
        case None | "memory://" | "":
            return MemoryIntents()
        case Path():
            return SqliteIntents(place)
        case str() if place.startswith("sqlite:///"):
            return SqliteIntents(place.removeprefix("sqlite:///"))
        case str() if "://" in place:
            raise ConfigurationError(
                f"intents are kept in a file (sqlite:///intents.db) or in memory, not in {place!r}"
            )
        case str():
            return SqliteIntents(place)
        case _:
            return place


def _terms(
    dialect: Dialect,
    backoff: Backoff,
    remember: float,
    safe_for: float,
    clock: Clock | None,
    random: Callable[[], float],
    hook: Callable[[Happening], object] | None,
) -> dict[str, Any]:
    return {
        "dialect": dialect,
        "backoff": backoff,
        "remember": remember,
        "safe_for": safe_for,
        "clock": clock or SystemClock(),
        "random": random,
        "hook": hook,
    }


def _check_http(http: object, options: dict[str, Any]) -> None:
    if http is not None and options:
        raise ConfigurationError(
            f"{', '.join(sorted(options))}: give these to the httpx client that you bring"
        )
