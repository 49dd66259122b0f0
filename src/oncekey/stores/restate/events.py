"""The room of events: kept, looked for, and given to the waits they fit."""

from __future__ import annotations

import asyncio
from itertools import groupby
from typing import Any

from oncekey.core.answers import Existing, Woken
from oncekey.core.execution import Promise, PromiseKind
from oncekey.core.ports import Gone
from oncekey.core.work import Event, Events, Match, Matched, Publish, Waits, event_id_of
from oncekey.stores.restate import event as kept
from oncekey.stores.restate import request, topic
from oncekey.stores.restate.ahead import ReadAhead
from oncekey.stores.restate.claims import Room
from oncekey.stores.restate.link import Link
from oncekey.stores.restate.objects import add_to_service, new_service
from oncekey.stores.restate.turns import in_turn
from oncekey.stores.restate.values import pack, unpack

SERVICE = "oncekey.Events"
_EXECUTION = "oncekey.Execution"
# Of how many waits this process knows which they are; others are looked for.
_KNOWN = 20_000
# How many are read at a time: all of a topic come to the object anyway.
_AHEAD = 2_000
_LAST = (1 << 63) - 1
# What one flow settles: few enough to be repeated, and not too much to be sent.
_AT_ONCE = 20
_BYTES_AT_ONCE = 4 << 20


class RestateEvents:
    def __init__(self, link: Link) -> None:
        self._link = link
        self._ahead = ReadAhead()
        # Whoever matches names waits by their numbers, and has mostly just read them.
        self._waits: dict[int, Promise] = {}

    def answers(self) -> Room:
        return {
            Publish: self._publish,
            Match: self._match,
            Matched: lambda asked: self._ask(asked.event, "matched"),
            Waits: self._read_waits,
            Events: self._read_events,
        }

    # -- publishing ----------------------------------------------------------------------

    async def _publish(self, asked: Publish) -> bool | Existing | Gone:
        event = asked.event._replace(matched=False)
        if asked.insert is None:
            return await self._keep(event) or Gone()
        key = asked.insert.digest.hex()
        while True:
            told = await self._link.call(request.SERVICE, key, "publish", [event, asked.insert])
            record, first = (None, event) if told is True else told
            # Whoever spent the key on another event may not live to keep it.
            if first is None or await self._keep(first):
                return True if record is None else Existing(record, None)
            await self._link.call(request.SERVICE, key, "unpublish", first.id)
            if record is None:
                return Gone()

    async def _keep(self, event: Event) -> bool:
        """Whether it is kept, for everybody to see; not when another one has its number."""
        place = kept.share_of(topic.topic_id(event.tenant, event.topic), event.id)
        is_kept, _ = await asyncio.gather(
            self._ask(event.id, "keep", event),
            self._link.call(kept.LOOKBACK, place, "put", event),
        )
        if not is_kept:
            await self._link.call(kept.LOOKBACK, place, "drop", kept.name_of(event))
        return bool(is_kept)

    async def _ask(self, number: int, handler: str, value: Any = None) -> Any:
        return await self._link.call(kept.SERVICE, f"{number:016x}", handler, value)

    # -- reading -------------------------------------------------------------------------

    async def _read_waits(self, asked: Waits) -> list[Promise]:
        page = self._ahead.next_page(asked)
        if page is None:
            tenant, name, after, until, limit = asked
            turn = self._ahead.turn()
            told = [after, until, max(limit, _AHEAD)]
            place = topic.topic_id(tenant, name)
            waits, is_all = await self._link.call(topic.SERVICE, place, "waits", told)
            page = self._ahead.keep(turn, asked, waits, is_all=is_all)
        self._remember(page)
        return page

    async def _read_events(self, asked: Events) -> list[Event]:
        tenant, name, since, after, limit = asked
        if limit == 1:
            event = await self._ask(after + 1, "find")
            if (
                event
                and (event.tenant, event.topic) == (tenant, name)
                and since <= event.created_at
            ):
                return [event]
        place = topic.topic_id(tenant, name)
        while True:
            found, known = await self._shares(place, [since, after, limit])
            if found or known == _LAST:
                return found[:limit]
            after = known

    async def _shares(self, place: str, asked: list[int]) -> tuple[list[Event], int]:
        """What all objects of the topic tell, as far as that is everything; and how far that is."""
        ids = [kept.share_of(place, share) for share in range(kept.SHARES)]
        told = await asyncio.gather(
            *(self._link.call(kept.LOOKBACK, each, "events", asked) for each in ids)
        )
        known = min(number for _, number in told)
        events = (event for events, _ in told for event in events)
        return sorted(event for event in events if event.id <= known), known

    def _remember(self, waits: list[Promise]) -> None:
        self._waits.update((wait.id, wait) for wait in waits)
        while len(self._waits) > _KNOWN:
            del self._waits[next(iter(self._waits))]

    # -- matching ------------------------------------------------------------------------

    async def _match(self, asked: Match) -> list[Woken]:
        waits = await self._waits_of(asked)
        fitting = [waits[number] for number in asked.promises if number in waits]
        fitting.sort(key=lambda wait: (wait.execution, wait.id))
        troubles = [(waits[number], told) for number, told in asked.troubles if number in waits]
        size = max(1, min(_AT_ONCE, _BYTES_AT_ONCE // (len(asked.body) + 1)))
        lean = asked._replace(promises=(), troubles=())
        parts = []
        while fitting or troubles:
            noted = [list(each) for each in troubles[:size]]
            parts.append([lean, self._link.space, fitting[:size], noted])
            fitting, troubles = fitting[size:], troubles[size:]
        told = await in_turn([self._link.call(SERVICE, None, "match", part) for part in parts])
        return [woken for each in told for woken in each]

    async def _waits_of(self, asked: Match) -> dict[int, Promise]:
        """Those of the tenant that wait, or waited, for events."""
        numbers = {*asked.promises, *(number for number, _ in asked.troubles)}
        strange = sorted(numbers - self._waits.keys())
        event = await self._ask(asked.event, "find") if strange else None
        if event is not None:
            place = topic.topic_id(event.tenant, event.topic)
            self._remember(await self._link.call(topic.SERVICE, place, "find_waits", strange))
        found = (self._waits.get(number) for number in numbers)
        return {
            wait.id: wait
            for wait in found
            if wait is not None and (wait.tenant, wait.kind) == (asked.tenant, PromiseKind.EVENT)
        }


# -- the flow ----------------------------------------------------------------------------------


async def match(ctx: Any, body: bytes) -> bytes:
    """`[match, space, waits, [wait, trouble]…]`: settle those waits. Once begun it is carried out
    to its end, so that what was settled is counted."""
    asked, space, waits, troubles = unpack(body)
    told_by = event_id_of(asked.event)

    def ask(wait: Promise, handler: str, value: list[Any]) -> Any:
        key = f"{space}.{wait.execution:016x}"
        return ctx.generic_call(_EXECUTION, handler, pack(value), key=key)

    # All are asked before the first answer is waited for.
    settling = [ask(wait, "match", [wait.id, asked.body, told_by, asked.now]) for wait in waits]
    noting = [ask(wait, "trouble", [wait.id, told]) for wait, told in troubles]
    woken = [found for each in settling if (found := unpack(await each)) is not None]
    after = _dropped(ctx, space, waits)
    if woken:
        key = f"{space}.{asked.event:016x}"
        after.append(ctx.generic_call(kept.SERVICE, "count", pack(len(woken)), key=key))
    for each in (*noting, *after):
        await each
    return pack(woken)


def _dropped(ctx: Any, space: str, waits: list[Promise]) -> list[Any]:
    """Whatever was asked about is settled, by this event or before."""
    places = sorted((topic.topic_id(wait.tenant, wait.topic or ""), wait.id) for wait in waits)
    return [
        ctx.generic_call(
            topic.SERVICE, "drop_waits", pack([number for _, number in group]), key=f"{space}.{id_}"
        )
        for id_, group in groupby(places, key=lambda each: each[0])
    ]


def events_service() -> Any:
    made = new_service(SERVICE)
    add_to_service(made, "match", match)
    return made
