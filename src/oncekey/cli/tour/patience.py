"""How the tour waits: longer than any machine should take, and no longer once it is to stop."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

from oncekey.cli.failure import Failure

SECONDS = 180.0
_LOOK_AGAIN = 0.02
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Patience:
    """While it is entered, a signal that ends the tour is heeded where the tour waits, and nowhere
    else: nothing is left half begun, and nothing disturbs the cleaning up."""

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._heard: int | None = None
        self.at_signal: Callable[[], None] = lambda: None
        """Called at once, so that no request is waited for."""

    def __enter__(self) -> Self:
        for number in _ENDING:
            # Whoever started us with nohup means it.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def heed(self) -> None:
        if self._heard is not None:
            raise Stopped(self._heard)

    def rest(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        self.heed()
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_AGAIN))
            self.heed()

    def wait_for(self, event: threading.Event, otherwise: str) -> None:
        self.wait_until(lambda: event.wait(_LOOK_AGAIN), otherwise)

    def wait_until(self, is_so: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + SECONDS
        while not is_so():
            if time.monotonic() > deadline:
                raise Failure(f"{otherwise}, after {SECONDS:.0f} seconds")
            self.rest(_LOOK_AGAIN)
        self.heed()

    def _hear(self, number: int, _: FrameType | None) -> None:
        if self._heard is None:
            self._heard = number
            self.at_signal()
