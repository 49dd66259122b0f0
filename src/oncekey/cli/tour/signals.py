"""Signals that end the tour: they come as exceptions, and not while something is half begun."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Signals:
    """While it is entered, they raise `Stopped`: only the first, what follows is cleaning up."""

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._is_shut = False
        self._heard: int | None = None
        self._was_raised = False

    def __enter__(self) -> Self:
        for number in _ENDING:
            # Whoever started us with nohup means it.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def shut(self) -> Iterator[None]:
        """Those that come meanwhile are heard at the end of the block."""
        self._is_shut = True
        try:
            yield
        finally:
            self._is_shut = False
            if self._heard is not None and not self._was_raised:
                self._raise(self._heard)

    def heed(self) -> None:
        """Raise what was heard. Python drops an exception that comes while it frees something."""
        if self._heard is not None:
            raise Stopped(self._heard)

    def _hear(self, number: int, _: FrameType | None) -> None:
        if self._heard is None:
            self._heard = number
            if not self._is_shut:
                self._raise(number)

    def _raise(self, number: int) -> None:
        self._was_raised = True
        raise Stopped(number)
