"""By which processes on a cluster call each other."""

from __future__ import annotations

from collections.abc import Callable

from oncekey.stores.restate.link import Link


class RestateBell:
    def __init__(self, link: Link) -> None:
        self._link = link
        self._heard: list[Callable[[], None]] = []

    def ring(self) -> None:
        for each in self._heard:
            each()

    def add(self, heard: Callable[[], None]) -> None:
        self._heard.append(heard)
        heard()

    def remove(self, heard: Callable[[], None]) -> None:
        if heard in self._heard:
            self._heard.remove(heard)

    async def close(self) -> None:
        self._heard.clear()
