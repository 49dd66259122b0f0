"""Callers of an idempotent API: what they want done is captured with a key, and done once."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Awaitable, Callable
from contextlib import aclosing, closing
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import httpx

from oncekey.client.answer import Kept, kept_of
from oncekey.client.backoff import Backoff
from oncekey.client.dialect import ONCEKEY, Dialect
from oncekey.client.happenings import Captured, Happening
from oncekey.client.intent import AsyncIntent, Intent
from oncekey.client.intents import Intents, MemoryIntents, Record
from oncekey.client.line import Line
from oncekey.client.request import thaw
from oncekey.client.sending import Keep, Rest, Send, Terms
from oncekey.client.sqlite.intents import SqliteIntents
from oncekey.core.clock import Clock, SystemClock
from oncekey.core.errors import ConfigurationError
from oncekey.core.key import check_name
from oncekey.core.steps import Steps, adrive, drive

T = TypeVar("T")
Draw = Callable[[], object]

DAY = 24 * 3600.0
_BACKOFF = Backoff()
# What would fail again in the same way.
_OURS = (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.TooManyRedirects)

H = TypeVar("H", bound=httpx.Client | httpx.AsyncClient)


class Caller(Generic[H]):
    """What both colours have in common. See `Client`."""

    def __init__(self, account: str, terms: Terms, draw: Draw, line: Line[H]) -> None:
        place = httpx.URL(line.base_url).copy_with(userinfo=b"")
        self.origin = f"{account} {place}".strip().rstrip("/")
        self.terms = terms
        self._draw = draw
        self._line = line

    @property
    def http(self) -> H:
        """The client of httpx that everything goes through."""
        return self._line.http()

    def _capture(self, name: str) -> Record:
        terms, now = self.terms, self.terms.clock.now()
        before = now - round(terms.remember * 1000)
        key = str(self._draw())
        record = terms.intents.capture(self.origin, check_name(name), key, now, before)
        if record.key == key:
            terms.tell(Captured(record.name, key))
        return record

    def _until(self, sent: Send) -> float:
        return self.terms.clock.steady() + sent.left * 1000

    def _check_time(self, until: float, response: httpx.Response) -> None:
        """An answer that comes drop by drop is never late by itself."""
        if self.terms.clock.steady() > until:
            raise httpx.ReadTimeout("the answer took too long", request=response.request)


class Client(Caller[httpx.Client]):
    """For blocking code. `options` are those of `httpx.Client`: headers, auth, timeout, …

    `intents` is where keys are kept until answers are known: a file (`"intents.db"` or
    `"sqlite:///intents.db"`), or memory. A finished intent is remembered for `remember` seconds:
    asked for again, it gives the same answer without a request. `safe_for` is how long the server
    keeps keys; an older intent is not sent again by itself. `on_event` is told what happens.
    Callers who share a file, and have accounts of their own there, say which: `account`.
    """

    def __init__(
        self,
        base_url: str = "",
        *,
        intents: Intents | str | Path | None = None,
        account: str = "",
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
        line = Line(httpx.Client, base_url, http, options)
        terms = Terms(
            intents_of(intents), dialect, backoff, remember, safe_for,
            clock or SystemClock(), random, on_event,
        )  # fmt: skip
        super().__init__(account, terms, draw, line)
        self._keeps = terms.intents is not intents
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
        return drive(steps, self._carry_out)

    def _carry_out(self, step: Send | Rest | Keep) -> Any:
        match step:
            case Send():
                return self._send(step)
            case Rest(seconds):
                return self._sleep(seconds)
            case Keep(function, arguments):
                return function(*arguments)

    def _send(self, sent: Send) -> Kept | httpx.RequestError:
        until, body = self._until(sent), bytearray()
        try:
            response = self.http.send(thaw(self.http, self.terms.dialect, sent), stream=True)
            with closing(response):
                for chunk in response.iter_bytes():
                    body += chunk
                    self._check_time(until, response)
        except _OURS:
            raise
        except httpx.RequestError as error:
            return error
        return kept_of(response, bytes(body))

    def close(self) -> None:
        if self._keeps:
            self.terms.intents.close()
        if self._line.owned:
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


class AsyncClient(Caller[httpx.AsyncClient]):
    """As `Client`, for async code: whatever asks the server is awaited. `options` are those of
    `httpx.AsyncClient`."""

    def __init__(
        self,
        base_url: str = "",
        *,
        intents: Intents | str | Path | None = None,
        account: str = "",
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
        line = Line(httpx.AsyncClient, base_url, http, options)
        terms = Terms(
            intents_of(intents), dialect, backoff, remember, safe_for,
            clock or SystemClock(), random, on_event,
        )  # fmt: skip
        super().__init__(account, terms, draw, line)
        self._keeps = terms.intents is not intents
        self._sleep = sleep

    def intent(self, name: str) -> AsyncIntent:
        """See `Client.intent`. Asks nobody, and writes without waiting for the disk."""
        return AsyncIntent(self, self._capture(name))

    def pending(self) -> list[AsyncIntent]:
        """See `Client.pending`."""
        return [AsyncIntent(self, each) for each in self.terms.intents.pending(self.origin)]

    async def drive(self, steps: Steps[T]) -> T:
        """Carry out the steps of a walk on the running event loop."""
        return await adrive(steps, self._carry_out)

    async def _carry_out(self, step: Send | Rest | Keep) -> Any:
        match step:
            case Send():
                return await self._send(step)
            case Rest(seconds):
                return await self._sleep(seconds)
            case Keep(function, arguments):
                return await asyncio.to_thread(function, *arguments)

    async def _send(self, sent: Send) -> Kept | httpx.RequestError:
        until, body = self._until(sent), bytearray()
        try:
            response = await self.http.send(thaw(self.http, self.terms.dialect, sent), stream=True)
            async with aclosing(response):
                async for chunk in response.aiter_bytes():
                    body += chunk
                    self._check_time(until, response)
        except _OURS:
            raise
        except httpx.RequestError as error:
            return error
        return kept_of(response, bytes(body))

    async def aclose(self) -> None:
        if self._keeps:
            self.terms.intents.close()
        if self._line.owned:
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
