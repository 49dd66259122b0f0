"""Events: kept first, then matched with every wait they may fit, in small transactions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from oncekey.core.errors import InvalidInput
from oncekey.core.execution import Promise
from oncekey.core.work import Event, Events, Match, Matched, Publish, Unmatched, Waits
from oncekey.durable.cel import ConditionTrouble
from oncekey.durable.conditions import Subject, compile_condition

if TYPE_CHECKING:
    from oncekey.durable.embedded.asking import Asking
    from oncekey.durable.embedded.runs import Runs

_PAGE = 200
_KEPT = 24 * 3600 * 1000
# An event that nobody has finished matching by then was its publisher's who died.
_LEFT_OVER_AFTER = 5_000

_decode = msgspec.json.decode


class EventMatching:
    def __init__(self, asking: Asking, runs: Runs) -> None:
        self._asking = asking
        self._runs = runs

    def check(self, key: str, where: str | None) -> None:
        """Raises `ConditionInvalid` for an expression that cannot be used."""
        if where is not None:
            compile_condition(where)

    async def publish(self, request: Publish) -> Any:
        """Keep the event and settle what it fits; a key that is taken is answered as it is."""
        answer = await self._asking.ask(request)
        if answer is True:
            return await self.match(request.event)
        return answer

    async def match(self, event: Event) -> int:
        """Every wait that was there when the event came; answers how many it settled."""
        after = 0
        while waits := await self._asking.ask(
            Waits(event.tenant, event.topic, after, event.created_at, _PAGE)
        ):
            after = waits[-1].id
            fitting, troubles = await self._fitting(waits, event)
            if fitting or troubles:
                await self._settle(event, fitting, troubles)
        return int(await self._asking.ask(Matched(event.id)))

    async def look_back(self, wait: Promise, seconds: float) -> None:
        """Events that came shortly before a wait was made, the oldest that fits first."""
        since, after = wait.created_at - round(seconds * 1000), 0
        assert wait.topic is not None
        while events := await self._asking.insist(
            Events(wait.tenant, wait.topic, since, after, limit=_PAGE)
        ):
            for event in events:
                fitting, troubles = await self._fitting([wait], event)
                if fitting or troubles:
                    await self._settle(event, fitting, troubles)
                if fitting:
                    return
            after = events[-1].id

    async def match_left_over(self) -> None:
        before = self._asking.clock.now() - _LEFT_OVER_AFTER
        for event in await self._asking.ask(Unmatched(before, _PAGE)):
            await self.match(event)

    async def _fitting(
        self, waits: list[Promise], event: Event
    ) -> tuple[list[int], list[tuple[int, str]]]:
        """Which of them the event fits, and for which that could not be found out."""
        subject = Subject(_decode(event.data), event.topic, _decode(event.headers))
        fitting: list[int] = []
        troubles: list[tuple[int, str]] = []
        for wait in waits:
            try:
                if _fits(wait, subject):
                    fitting.append(wait.id)
            except (ConditionTrouble, InvalidInput) as trouble:
                # Also of an expression that another process could read, and this one cannot.
                troubles.append((wait.id, str(trouble)))
            # Others have their turn between two expressions, each of which is bounded in cost.
            await asyncio.sleep(0)
        return fitting, troubles

    async def _settle(
        self, event: Event, fitting: list[int], troubles: list[tuple[int, str]]
    ) -> None:
        request = Match(
            event.tenant,
            event.id,
            tuple(fitting),
            event.data,
            self._asking.clock.now(),
            tuple(troubles),
        )
        for woken in await self._asking.insist(request):
            self._runs.woken(woken)


def _fits(wait: Promise, subject: Subject) -> bool:
    return not wait.condition or compile_condition(wait.condition).holds(subject)


def event_of(number: int, tenant: str, topic: str, data: bytes, headers: bytes, now: int) -> Event:
    return Event(number, tenant, topic, data, headers, now, now + _KEPT)
