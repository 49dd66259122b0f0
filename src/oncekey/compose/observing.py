"""Settings to objects: who watches over the requests of a process, and what is shown of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from enum import Enum
from pathlib import Path
from typing import Any

from oncekey.compose.address import Address, Memory, Postgres, Restate, SqliteFile, address_of
from oncekey.compose.readers import Readers
from oncekey.config.settings import Settings
from oncekey.core.callers import Callers
from oncekey.core.census import Censuses, Counted
from oncekey.core.errors import ConfigurationError, StoreError
from oncekey.integrations.asgi import respond
from oncekey.integrations.lifespan import Receive, Scope, Send
from oncekey.observe.meter import Meter
from oncekey.observe.metrics import Metrics
from oncekey.observe.neighbours import Neighbours
from oncekey.observe.pulse import EVERY, Pulse
from oncekey.observe.requests import RequestLog
from oncekey.observe.snapshot import Counts
from oncekey.observe.watch import RequestWatch
from oncekey.wire.problem import Response, not_allowed, problem, problem_of

log = logging.getLogger("oncekey")

_ADMINS_ONLY = (
    "Send a header 'Authorization: Bearer oka_…' with the key of an admin that is neither expired "
    "nor revoked; `oncekey apikeys create --admin` makes one."
)
_STORES: dict[type[Address], str] = {
    Memory: "memory",
    SqliteFile: "sqlite",
    Postgres: "postgresql",
    Restate: "restate",
}
_READS = frozenset({"GET", "HEAD"})
_WRITE_EVERY = 1.0
# The count itself decides when there is a new one.
_LOOK_EVERY = 5.0


class Observing:
    """The metrics of this process, and of those beside it that share `folder` with it."""

    def __init__(self, settings: Settings, folder: Path | None = None) -> None:
        chosen = settings.metrics
        self.meter = Meter(
            store=_STORES[type(address_of(settings.store.url))],
            max_tenants=chosen.max_tenants,
            max_endpoints=chosen.max_endpoints,
            folder=folder,
        )
        lines = settings.log.requests
        self._provider = _provider_of(settings)
        self.watch = RequestWatch(
            self.meter,
            None if lines == "none" else RequestLog(lines),
            None if self._provider is None else _tracing_by(self._provider),
        )
        self._neighbours = Neighbours(self.meter, folder)
        self.pulse = Pulse(self._neighbours.total)
        self.metrics = Metrics(self.meter, self._neighbours.total)

    @asynccontextmanager
    async def running(self, censuses: Censuses) -> AsyncIterator[None]:
        """What is done beside requests."""
        loops = (
            (_WRITE_EVERY, self._write),
            (EVERY, self._take),
            (_LOOK_EVERY, lambda: self._look(censuses)),
        )
        tasks = [asyncio.create_task(_repeat(seconds, work)) for seconds, work in loops]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.to_thread(self._neighbours.close)
            if self._provider is not None:
                await asyncio.to_thread(self._provider.shutdown)

    def page(self, settings: Settings, callers: Callers) -> MetricsPage | None:
        """For whoever may read it."""
        if not settings.metrics.enabled:
            return None
        readers = Readers(callers) if settings.metrics.access == "admin" else None
        return MetricsPage(settings.metrics.path, self.metrics, readers)

    async def _write(self) -> None:
        await asyncio.to_thread(self._neighbours.write)

    async def _take(self) -> None:
        await asyncio.to_thread(self.pulse.take)

    async def _look(self, censuses: Censuses) -> None:
        counted = await censuses.latest()
        if counted is not None:
            self.meter.counts = counts_of(counted)


class MetricsPage:
    """The metrics at their path, for admins unless everybody may read them."""

    def __init__(self, path: str, metrics: Metrics, readers: Readers | None) -> None:
        self._path = path
        self._metrics = metrics
        self._readers = readers

    def has(self, path: str) -> bool:
        return path == self._path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._answer(scope)
        if scope["method"] == "HEAD":
            response = response._replace(body=b"")
        await respond(send, response)

    async def _answer(self, scope: Scope) -> Response:
        if scope["method"] not in _READS:
            return not_allowed(_READS)
        try:
            if self._readers is not None and not await self._readers.admit(scope["headers"]):
                return problem("unauthorized", _ADMINS_ONLY)
        except StoreError as error:
            return problem_of(error)
        accept = b", ".join(value for name, value in scope["headers"] if name == b"accept")
        kind, page = await asyncio.to_thread(self._metrics.page, accept.decode("latin-1"))
        lines = (
            (b"content-type", kind.encode("latin-1")),
            (b"content-length", str(len(page)).encode()),
            (b"cache-control", b"no-store"),
        )
        return Response(200, lines, page)


def observing_of(settings: Settings, folder: Path | None = None) -> Observing | None:
    """None where nobody is to count, to tell or to trace."""
    asked = settings.metrics.enabled or settings.log.requests != "none" or settings.traces.endpoint
    return Observing(settings, folder) if asked else None


def _provider_of(settings: Settings) -> Any:
    traces = settings.traces
    if traces.endpoint is None:
        return None
    try:
        from oncekey.observe.exporting import provider_of
    except ModuleNotFoundError as error:
        missing = f"{error}; traces.endpoint needs it"
        raise ConfigurationError(f"{missing}: pip install 'oncekey[otel]'") from error
    return provider_of(traces.endpoint, traces.sample, traces.service)


def _tracing_by(provider: Any) -> Any:
    from oncekey.observe.traces import Tracing

    return Tracing(provider)


def counts_of(counted: Counted) -> Counts:
    return Counts(
        counted.at,
        counted.claims_in_progress,
        counted.oldest_claim_at,
        _named(counted.promises),
        _named(counted.executions),
        counted.oldest_waiting_at,
    )


def _named(counts: Mapping[Any, int]) -> dict[str, int]:
    return {_name_of(kind): number for kind, number in counts.items()}


def _name_of(kind: Enum) -> str:
    return kind.name.lower()


async def _repeat(seconds: float, work: Any) -> None:
    while True:
        try:
            await work()
        except Exception:
            log.exception("what is told of this process could not be gathered")
        await asyncio.sleep(seconds)
