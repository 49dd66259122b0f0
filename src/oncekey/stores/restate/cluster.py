"""Everything a process has to do with one Restate cluster. All of it belongs to one loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from oncekey.core.errors import OnceKeyError, StoreUnavailable
from oncekey.core.ports import (
    Abandon,
    Beat,
    Faults,
    Held,
    Insert,
    Release,
    Replace,
    Settle,
    Take,
)
from oncekey.core.work import Withdraw
from oncekey.stores.restate import owners
from oncekey.stores.restate.admin import Admin
from oncekey.stores.restate.bell import RestateBell
from oncekey.stores.restate.claims import Claims
from oncekey.stores.restate.endpoint import Endpoint
from oncekey.stores.restate.ingress import Ingress, NotServed
from oncekey.stores.restate.life import Life
from oncekey.stores.restate.link import Link
from oncekey.stores.restate.place import RestatePlace
from oncekey.stores.restate.shared import rooms_of, shared_objects
from oncekey.stores.restate.thread import LoopThread

log = logging.getLogger("oncekey")

# How long a caller waits for a cluster that is away before it is told.
PATIENCE = 10.0
_PAUSE = 0.5
_ENDINGS = (Settle, Release, Abandon, Withdraw)


class Cluster:
    def __init__(
        self, place: RestatePlace, lease: int, heartbeat: float, fault: Faults | None
    ) -> None:
        self.place = place
        self.fault = fault
        self.admin = Admin(place.admin)
        self.ingress = Ingress(place.ingress)
        self.link = Link(self.ingress, self.admin, place.space, PATIENCE)
        self.life = Life(self.link, lease)
        self.claims = Claims(self.link, self.life)
        self.bell = RestateBell(self.link)
        self.endpoint = Endpoint(place, self.admin, shared_objects())
        self._heartbeat = heartbeat
        self._rooms = rooms_of(self.link, self.claims, self.life)
        self._answers: dict[type, Callable[[Any], Awaitable[Any]]] = {
            kind: answer for room in self._rooms for kind, answer in room.answers().items()
        }

    async def open(self, beat: Beat, thread: LoopThread, *, hosts: bool) -> None:
        self._beat = beat
        self._thread = thread
        self._hosts = hosts
        if hosts:
            await self.endpoint.open()
        beat(await self.life.begin())
        thread.begin(self._live())

    async def answer(self, request: Any) -> Any:
        """Carry a request out. When that is not heard of in time, whoever asked is told so; what
        must not be left half done is carried out all the same."""
        function = self._answers[type(request)]
        try:
            if self.fault is not None:
                self.fault("before-commit")
            answer = await function(request)
        except StoreUnavailable:
            if isinstance(request, _ENDINGS):
                self._thread.begin(self._insist(request))
            elif isinstance(request, Insert | Replace | Take):
                self._thread.begin(self._undo(request))
            raise
        if self.fault is not None:
            self.fault("after-commit")
        return answer

    async def owners(self, handler: str, value: Any) -> Any:
        return await self.link.call(owners.SERVICE, owners.ALL, handler, value)

    async def sweep(self, now: int, batch: int) -> int:
        """Records first; when there are none left, what other rooms keep."""
        for each in (self.claims, *self._rooms):
            sweep = getattr(each, "sweep", None)
            if sweep is not None and (swept := await sweep(now, batch)):
                return int(swept)
        return 0

    async def count_expired(self, now: int) -> int:
        count = len(await self.claims.expired(now, 1 << 30))
        for each in self._rooms:
            counted = getattr(each, "count_expired", None)
            count += 0 if counted is None else await counted(now)
        return count

    async def close(self) -> None:
        try:
            await self.bell.close()
            async with asyncio.timeout(PATIENCE):
                await self.life.end()
        except TimeoutError:
            raise StoreUnavailable from None
        finally:
            await self.endpoint.close()
            await self.ingress.close()
            await self.admin.close()

    # -- in the background ---------------------------------------------------------------

    async def _live(self) -> None:
        """Signs of life, and somebody who serves the shared objects, for ever."""
        while True:
            await asyncio.sleep(self._heartbeat)
            try:
                self._beat(await self.life.beat())
            except NotServed:
                await self._host_again()
            except OnceKeyError as error:
                log.warning("Restate does not hear this process: %s", error)

    async def _host_again(self) -> None:
        """The cluster has forgotten us, or whoever served is gone for good."""
        if not self._hosts:
            return
        try:
            await self.endpoint.host()
        except OnceKeyError as error:
            log.warning("this process cannot serve Restate: %s", error)

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

    async def _undo(self, request: Insert | Replace | Take) -> None:
        """Nobody knows whether the claim was made: made once more it is known, and given back."""
        answer = None
        while answer is None:
            await asyncio.sleep(_PAUSE)
            try:
                answer = await self._answers[type(request)](request)
            except StoreUnavailable:
                continue
        if isinstance(answer, Held):
            number = request.insert.id if isinstance(request, Replace) else request.id
            ending = Abandon if isinstance(request, Take) else Release
            await self._insist(ending(number, answer.fence))
