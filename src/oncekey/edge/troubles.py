"""What operators are told of requests that came to nothing: why, which callers are not told. A few
lines a minute for each kind, and a count of the rest."""

from __future__ import annotations

import logging
from collections.abc import Callable

from oncekey.core.flood import Flood

log = logging.getLogger("oncekey")

MOST = 10
"""Lines a minute, of each kind."""


class Troubles:
    def __init__(self, steady: Callable[[], int]) -> None:
        self._flood = Flood(steady, MOST, _tell_more)

    def tell(self, code: str, why: str, peer: str = "") -> None:
        """`why` never holds a secret: no error has one in its text."""
        if self._flood.admit((code, "")):
            log.warning("%s%s: %s", code, f" from {peer}" if peer else "", why)


def _tell_more(name: tuple[str, str], times: int) -> None:
    log.warning("%s: %d more in the last minute", name[0], times)
