"""Time as an argument: wall time for what people see, steady time for leases."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> int:
        """Wall time in milliseconds since 1970."""
        ...

    def steady(self) -> int:
        """Milliseconds that never jump and that all processes of one machine share."""
        ...


class SystemClock:
    # CLOCK_BOOTTIME counts suspend too; where it is missing, the monotonic clock is shared as well.
    _steady = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def steady(self) -> int:
        return time.clock_gettime_ns(self._steady) // 1_000_000
