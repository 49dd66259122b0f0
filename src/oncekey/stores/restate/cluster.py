"""Everything a process has to do with one Restate cluster. All of it belongs to one loop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

from oncekey.core.errors import LedgerClosed, OnceKeyError, StoreError, StoreUnavailable
from oncekey.core.ports import Abandon, Beat, Committed, Faults, Release, Settle, Waiter
from oncekey.core.waiting import deliver
from oncekey.core.work import Withdraw
from oncekey.stores.restate import owners
from oncekey.stores.restate.admin import Admin
from oncekey.stores.restate.bell import RestateBell
from oncekey.stores.restate.claims import Claims
from oncekey.stores.restate.deployments import Deployments
from oncekey.stores.restate.endpoint import Endpoint
from oncekey.stores.restate.forward import Forwards
from oncekey.stores.restate.ingress import Ingress, NotServed
from oncekey.stores.restate.life import Life
from oncekey.stores.restate.link import Link
from oncekey.stores.restate.options import RestateOptions
from oncekey.stores.restate.place import RestatePlace
from oncekey.stores.restate.presence import Presence
from oncekey.stores.restate.retaining import Retaining
from oncekey.stores.restate.runners import Runners
from oncekey.stores.restate.shared import rooms_of, shared_objects
from oncekey.stores.restate.stranded import Stranded
from oncekey.stores.restate.thread import LoopThread

log = logging.getLogger("oncekey")

# How long a caller waits for a cluster that is away before it is told.
PATIENCE = 10.0
# Who asks and does not serve learns sooner that nobody does.
_REACH_TIMEOUT = 5.0
_LEAVE_TIMEOUT = 3.0
_PAUSE = 0.5
_ENDINGS = (Settle, Release, Abandon, Withdraw)


class Cluster:
    def __init__(
        self,
        place: RestatePlace,
        thread: LoopThread,
        *,
        lease: float,
        heartbeat: float,
        fault: Faults | None,
        options: RestateOptions,
        forwards: Forwards,
    ) -> None:
        self.place = place
        self.options = options
        self.fault = fault
        self._thread = thread
        self.admin = Admin(place.admin)
        self.ingress = Ingress(place.ingress)
        self.link = Link(self.ingress, self.admin, place.space, PATIENCE, self._begin)
        self.life = Life(self.link, int(lease * 1000), int(heartbeat * 1000))
        self.claims = Claims(self.link, self.life)
        self.bell = RestateBell(self.link)
        patience = PATIENCE if options.hosts else _REACH_TIMEOUT
        self.deployments = Deployments(self.admin, patience=patience)
        self.objects = shared_objects(forwards)
        forwards.written = self.claims.under
        self.retaining = Retaining(self.admin, self.objects[0], options)
        self.endpoint = Endpoint(
            place, self.deployments, self.objects, shares=options.shares or place.shares
        )
        self.runners = Runners(self.endpoint, Stranded(self.link))
        self._heartbeat = heartbeat
        self._presence: Presence | None = None
        self._under_way: set[asyncio.Task[None]] = set()
        self._rooms = rooms_of(self.link, self.claims, self.life)
        self._answers: dict[type, Callable[[Any], Awaitable[Any]]] = {
            kind: answer for room in self._rooms for kind, answer in room.answers().items()
        }

    async def open(self, beat: Beat) -> None:
        if self.options.hosts:
            await self.endpoint.open()
        else:
            await self._need_host()
        self._beat = beat
        await self._hear(await self._born())
        endpoint = self.endpoint if self.options.hosts else None
        self._presence = Presence(self.life, endpoint, self._hear, self._heartbeat)
        self._begin(self._presence.run())
        self._begin(self.runners.run(self._heartbeat))

    def describe(self) -> tuple[str, ...]:
        nodes = ", ".join(each.removeprefix("http://") for each in self.place.ingress)
        endpoint = self.endpoint
        called = f"calls this process at {endpoint.uri}" if endpoint.listens else "is only asked"
        served = "here" if endpoint.hosts else f"at {endpoint.host_uri}"
        return (
            f"Restate: {nodes}, space {self.place.space}; it {called}",
            f"OnceKey's objects are served {served}",
        )

    async def _born(self) -> dict[str, float]:
        """Nodes learn one after the other what is served."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return await self.life.begin()
            except NotServed:
                if not self.options.hosts or time.monotonic() > deadline:
                    raise
                await asyncio.sleep(_PAUSE)

    async def _hear(self, classes: dict[str, float]) -> None:
        self._beat(classes)
        if self.endpoint.hosts:
            await self.retaining.learn(classes)

    async def set_retention(self, name: str, seconds: float) -> None:
        await self.owners("set_retention", [name, seconds])
        await self.retaining.apply(await self.owners("retention", None))

    async def retain(self, classes: Mapping[str, float]) -> None:
        """The configuration has other classes from now on."""
        self.retaining.configure(classes)
        await self.retaining.apply(await self.owners("retention", None))

    def submit(self, request: Any, waiter: Waiter, committed: Committed | None = None) -> None:
        task = asyncio.get_running_loop().create_task(self._tell(request, waiter, committed))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _tell(self, request: Any, waiter: Waiter, committed: Committed | None) -> None:
        began = time.perf_counter()
        try:
            answer = await self.answer(request)
            if committed is not None:
                committed(1, time.perf_counter() - began)
        except asyncio.CancelledError:
            answer = LedgerClosed()
        except OnceKeyError as error:
            answer = error
        except Exception as error:
            log.exception("what was asked of Restate could not be understood")
            answer = StoreError(f"{type(error).__name__}: {error}")
        deliver([(waiter, answer)])

    async def answer(self, request: Any) -> Any:
        """Carry a request out. When that is not heard of in time, whoever asked is told so; what
        must not be left half done is carried out all the same."""
        function = self._answers[type(request)]
        try:
            self._reach("taken", request)
            answer = await function(request)
        except StoreUnavailable:
            if self._presence is not None:
                self._presence.disturb()
            if isinstance(request, _ENDINGS):
                self._begin(self._insist(request))
            raise
        self._reach("committed", request)
        return answer

    def _reach(self, point: str, request: Any) -> None:
        """As stores do that commit groups: here each request is one."""
        if self.fault is not None:
            for kind in ("group", type(request).__name__):
                self.fault(f"{kind}-{point}")

    async def owners(self, handler: str, value: Any) -> Any:
        return await self.link.call(owners.SERVICE, owners.ALL, handler, value)

    async def sweep(self, now: int, batch: int) -> int:
        """Records first; when there are none left, what other rooms keep."""
        for each in self._rooms:
            sweep = getattr(each, "sweep", None)
            if sweep is not None and (swept := await sweep(now, batch)):
                return int(swept)
        return 0

    async def count_expired(self, now: int) -> int:
        count = 0
        for each in self._rooms:
            counted = getattr(each, "count_expired", None)
            count += 0 if counted is None else await counted(now)
        return count

    async def close(self) -> None:
        """What is under way is carried out first, then this process is no owner any more."""
        try:
            async with asyncio.timeout(_LEAVE_TIMEOUT):
                if self._presence is not None:
                    await self._presence.end()
                while self._under_way:
                    await asyncio.wait(self._under_way)
                await self.bell.close()
                await self.life.end()
        except TimeoutError:
            raise StoreUnavailable from None
        finally:
            await self.hang_up()

    async def hang_up(self) -> None:
        """Serve and ask nothing any more."""
        await self.endpoint.close()
        await self.ingress.close()
        await self.admin.close()

    # -- in the background ---------------------------------------------------------------

    async def _need_host(self) -> None:
        there = await self.deployments.serving(self.objects[0].name)
        if there is None:
            raise NotServed
        if not await self.deployments.is_reached(there.uri, patience=_REACH_TIMEOUT):
            raise NotServed(
                f"no process serves OnceKey's objects on this Restate cluster: {there.uri} did, "
                "and does not answer; start `oncekey serve`"
            )

    async def _insist(self, request: Any) -> None:
        while True:
            await asyncio.sleep(_PAUSE)
            try:
                await self._answers[type(request)](request)
            except StoreUnavailable:
                continue
            except OnceKeyError:
                log.exception("the end of a claim is lost")
            return

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self._thread.begin(work)
