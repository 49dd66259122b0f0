"""A bound on what others can make us write: so many a minute, and a count of the rest."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

_MINUTE = 60_000
_MOST_WINDOWS = 4096


class _Window(NamedTuple):
    until: int
    """By the steady clock."""
    admitted: int
    over: int = 0


class Flood:
    """`tell` gets the name of a flood and how many of it were not admitted when its minute is over:
    by a timer of the running loop, or when the next one comes."""

    def __init__(
        self, steady: Callable[[], int], most: int, tell: Callable[[tuple[str, str], int], None]
    ) -> None:
        self._steady = steady
        self._most = most
        self._tell = tell
        self._windows: OrderedDict[tuple[str, str], _Window] = OrderedDict()

    def admit(self, name: tuple[str, str]) -> bool:
        now = self._steady()
        window = self._windows.get(name)
        if window is not None and window.until <= now:
            self._close(name)
            window = None
        if window is None:
            self._open(name, _Window(now + _MINUTE, 1))
            return True
        if window.admitted < self._most:
            self._windows[name] = window._replace(admitted=window.admitted + 1)
            return True
        if not window.over:
            self._close_later(name, window.until - now)
        self._windows[name] = window._replace(over=window.over + 1)
        return False

    def end(self) -> None:
        """Tell of all there are, whether their minute is over or not."""
        for name in list(self._windows):
            self._close(name)

    def _open(self, name: tuple[str, str], window: _Window) -> None:
        self._windows[name] = window
        if len(self._windows) > _MOST_WINDOWS:
            self._close(next(iter(self._windows)))

    def _close(self, name: tuple[str, str]) -> None:
        window = self._windows.pop(name, None)
        if window is not None and window.over:
            self._tell(name, window.over)

    def _close_later(self, name: tuple[str, str], milliseconds: int) -> None:
        loop = running_loop()
        if loop is not None:
            loop.call_later(milliseconds / 1000, self._close_if_over, name)

    def _close_if_over(self, name: tuple[str, str]) -> None:
        window = self._windows.get(name)
        if window is not None and window.until <= self._steady():
            self._close(name)


def running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
