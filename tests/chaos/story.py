"""One job as everybody saw it: who asked what, what each was told, and what was done."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from tests.chaos.history import Answered, Effect, Ended, Event, GaveUp, Left, Lost, Sent, Trouble


class Slot(NamedTuple):
    """What a key is unique in."""

    place: str
    who: str
    key: str

    def __str__(self) -> str:
        return f"{self.place} {self.key}{f' of {self.who}' if self.who else ''}"


class Exchange(NamedTuple):
    sent: Sent
    end: Answered | Lost | None

    @property
    def slot(self) -> Slot:
        return Slot(self.sent.place, self.sent.who, self.sent.key)

    @property
    def answered(self) -> Answered | None:
        return self.end if isinstance(self.end, Answered) else None

    @property
    def status(self) -> int:
        """0 where no answer came."""
        return 0 if self.answered is None else self.answered.status

    @property
    def problem(self) -> str:
        return "" if self.answered is None else self.answered.problem

    @property
    def text(self) -> str:
        return "" if self.answered is None else self.answered.body

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.text)

    @property
    def ended(self) -> float:
        return self.sent.at if self.end is None else self.end.at


class Troubles:
    """What was done to the servers, and when."""

    def __init__(self, all_: Iterable[Trouble]) -> None:
        self._all = list(all_)

    def met(self, server: str, since: float, until: float, kinds: frozenset[str]) -> bool:
        return any(
            each.what in kinds
            and each.server in {"", server}
            and each.at <= until
            and each.until >= since
            for each in self._all
        )


class Story:
    def __init__(self, job: int, events: list[Event], troubles: Troubles) -> None:
        self.job = job
        self.troubles = troubles
        ends = {e.call: e for e in events if isinstance(e, Answered | Lost)}
        sent = [e for e in events if isinstance(e, Sent)]
        self.exchanges = [Exchange(e, ends.get(e.call)) for e in sent]
        self.effects = [e for e in events if isinstance(e, Effect)]
        self.gave_up = [e for e in events if isinstance(e, GaveUp)]
        self.ended_servers = [e for e in events if isinstance(e, Ended)]
        self.left = [e for e in events if isinstance(e, Left)]

    @cached_property
    def slots(self) -> dict[Slot, list[Exchange]]:
        found: dict[Slot, list[Exchange]] = defaultdict(list)
        for exchange in self.exchanges:
            found[exchange.slot].append(exchange)
        return found

    def at(self, place: str) -> list[Exchange]:
        """What was answered there."""
        return [e for e in self.exchanges if e.sent.place == place and e.answered is not None]

    def done(self, slot: Slot) -> list[Effect]:
        return [e for e in self.effects if (e.place, e.who, e.key) == slot]


def stories(events: Iterable[Event]) -> Iterator[Story]:
    """Of each job, in their order; what belongs to none is the story of job -1."""
    troubles, jobs = [], defaultdict(list)
    for event in events:
        if isinstance(event, Trouble):
            troubles.append(event)
        else:
            jobs[event.job].append(event)
    told = Troubles(troubles)
    for job in sorted(jobs):
        yield Story(job, jobs[job], told)
