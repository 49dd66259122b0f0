"""Waits of a topic that were read with a page, for the pages that follow it.

A page that is the first is always read. So what follows it is never older than what its reader did
before: an event that it has kept is looked for by every wait that is not in these pages.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

from oncekey.core.execution import Promise
from oncekey.core.work import Waits

# Of so many matches under way, of events of one topic and time each.
_MATCHES = 16

Place = tuple[str, str, int]


class _Read(NamedTuple):
    turn: int
    after: int
    waits: list[Promise]
    is_all: bool


class ReadAhead:
    def __init__(self) -> None:
        self._read: dict[Place, _Read] = {}
        self._turns = itertools.count(1)

    def turn(self) -> int:
        """To be taken before something is read."""
        return next(self._turns)

    def next_page(self, asked: Waits) -> list[Promise] | None:
        """The page, if it follows one that was read; None when it must be read."""
        place = _place_of(asked)
        read = self._read.get(place)
        if read is None or not asked.after or read.after != asked.after:
            return None
        if not read.waits:
            del self._read[place]
            return [] if read.is_all else None
        return self._cut(place, read, asked)

    def keep(self, turn: int, asked: Waits, waits: list[Promise], *, is_all: bool) -> list[Promise]:
        """The page that was asked for. What was begun to be read later is not replaced."""
        place = _place_of(asked)
        newer = self._read.get(place)
        if not waits or (newer is not None and newer.turn > turn):
            return waits[: asked.limit]
        self._read.pop(place, None)
        page = self._cut(place, _Read(turn, asked.after, waits, is_all), asked)
        while len(self._read) > _MATCHES:
            del self._read[next(iter(self._read))]
        return page

    def _cut(self, place: Place, read: _Read, asked: Waits) -> list[Promise]:
        page, rest = read.waits[: asked.limit], read.waits[asked.limit :]
        self._read[place] = read._replace(after=page[-1].id, waits=rest)
        return page


def _place_of(asked: Waits) -> Place:
    return asked.tenant, asked.topic, asked.until
