"""How long the tour waits for what is to happen: longer than any machine should take."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from oncekey.cli.failure import Failure

SECONDS = 180.0
_LOOK_AGAIN = 0.02


def wait_for(event: threading.Event, otherwise: str) -> None:
    if not event.wait(SECONDS):
        raise Failure(f"{otherwise}, after {SECONDS:.0f} seconds")


def wait_until(is_so: Callable[[], bool], otherwise: str) -> None:
    """For what can only be asked for."""
    deadline = time.monotonic() + SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise Failure(f"{otherwise}, after {SECONDS:.0f} seconds")
        time.sleep(_LOOK_AGAIN)
