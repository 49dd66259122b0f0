"""The oracle of events: published once, and given to whatever waits for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oncekey.core.answers import Existing, Woken
from oncekey.core.execution import Promise, PromiseKind, PromiseState
from oncekey.core.looking import Looked
from oncekey.core.ports import Gone
from oncekey.core.work import (
    Event,
    Events,
    ListEvents,
    Match,
    Matched,
    Publish,
    Target,
    Unmatched,
    Waits,
    event_id_of,
)
from oncekey.stores.memory.kept import Kept
from oncekey.stores.memory.looking import looked


class MemoryEvents:
    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def answers(self) -> dict[type, Callable[[Any], Any]]:
        return {
            Publish: self._publish,
            Match: self._match,
            Matched: self._matched,
            Waits: self._waits,
            Events: self._events,
            ListEvents: self._newest,
            Unmatched: self._unmatched,
        }

    def _publish(self, request: Publish) -> bool | Existing | Gone:
        event, insert = request
        if insert is not None:
            taken = self._kept.keys.spend(insert)
            if isinstance(taken, Gone):
                return taken
            if taken is not None:
                return Existing(taken, None)
        event = event._replace(matched=False)
        kept = self._kept.events.setdefault(event.id, event)
        if kept._replace(matched=False) == event:
            return True
        if insert is not None:
            self._kept.keys.forget(insert.id)
        return Gone()

    def _match(self, request: Match) -> list[Woken]:
        woken, told_by = [], event_id_of(request.event)
        found = (self._kept.find(Target(request.tenant, id=number)) for number in request.promises)
        fitting = [each for each in found if each and each.kind is PromiseKind.EVENT]
        for promise in sorted(fitting, key=lambda each: (each.execution, each.id)):
            settled = self._kept.settle(
                promise.id, PromiseState.RESOLVED, request.body, told_by, request.now
            )
            if settled is not None and settled.woken is not None:
                woken.append(settled.woken)
        for number, trouble in request.troubles:
            waiting = self._kept.promises.get(number)
            if waiting is not None and waiting.state is PromiseState.PENDING:
                self._kept.promises[number] = waiting._replace(trouble=trouble)
        if request.event in self._kept.events:
            before = self._kept.matches.get(request.event, 0)
            self._kept.matches[request.event] = before + len(woken)
        return woken

    def _matched(self, request: Matched) -> int:
        event = self._kept.events.get(request.event)
        if event is None:
            return 0
        self._kept.events[event.id] = event._replace(matched=True)
        return self._kept.matches.get(event.id, 0)

    def _waits(self, request: Waits) -> list[Promise]:
        tenant, topic, after, until, limit = request
        numbers = [
            number
            for number, promise in sorted(self._kept.promises.items())
            if (promise.tenant, promise.topic) == (tenant, topic)
            and promise.state is PromiseState.PENDING
            and number > after
            and promise.created_at <= until
        ]
        found = (self._kept.promise(number) for number in numbers[:limit])
        return [promise for promise in found if promise is not None]

    def _events(self, request: Events) -> list[Event]:
        found = [
            event
            for number, event in sorted(self._kept.events.items())
            if number > request.after
            and (event.tenant, event.topic) == (request.tenant, request.topic)
            and event.created_at >= request.since
        ]
        return found[: request.limit]

    def _newest(self, request: ListEvents) -> Looked[Event]:
        def fits(event: Event) -> bool:
            return request.tenant in {None, event.tenant} and request.topic in {None, event.topic}

        newest = [event for _, event in sorted(self._kept.events.items(), reverse=True)]
        return looked(newest, request, fits)

    def _unmatched(self, request: Unmatched) -> list[Event]:
        found = [
            event
            for _, event in sorted(self._kept.events.items())
            if not event.matched and event.created_at < request.before
        ]
        return found[: request.limit]
