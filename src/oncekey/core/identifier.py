"""Numbers for operations: ordered in time, unique without asking anyone, never used again."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable

# 42 bits of milliseconds leave 21 bits below them within a signed 64-bit column.
_LOW_BITS = 21
_DIGITS = re.compile(r"[0-9a-f]{16}")


class OperationNumbers:
    """Each number is greater than the last one, even when the clock steps back.

    Within a millisecond the first number starts at a random place, so that two processes
    rarely meet; when they do, the store refuses the second insert and a new number is drawn.
    """

    def __init__(self, randbits: Callable[[int], int]) -> None:
        self._randbits = randbits
        self._last = 0
        self._millisecond = 0
        self._lock = threading.Lock()

    def draw(self, now: int) -> int:
        with self._lock:
            if now > self._millisecond:
                self._millisecond = now
                fresh = now << _LOW_BITS | self._randbits(_LOW_BITS - 1)
                self._last = max(self._last + 1, fresh)
            else:
                self._last += 1
            return self._last

    def renewed(self) -> OperationNumbers:
        """Numbers that go other ways than these, in a process that is a copy of this one."""
        return OperationNumbers(self._randbits)

    def floor(self, now: int) -> int:
        """No number drawn from now on is lower than this. It rises also while none is drawn: what
        is looked for above it would else be everything, after a quiet night."""
        with self._lock:
            self._last = max(self._last, first_number(now))
            return self._last


def millisecond_of(number: int) -> int:
    """When a number was drawn, in milliseconds since 1970."""
    return number >> _LOW_BITS


def first_number(millisecond: int) -> int:
    """No number drawn then or later is lower."""
    return max(0, millisecond) << _LOW_BITS


def text_of(prefix: str, number: int) -> str:
    """`dl_` and 16 hexadecimal digits, say, which sort as the number does."""
    return f"{prefix}{number:016x}"


def number_in(prefix: str, text: str) -> int | None:
    """The inverse of `text_of`; None for anything else."""
    digits = text.removeprefix(prefix)
    if digits == text or not _DIGITS.fullmatch(digits):
        return None
    number = int(digits, 16)
    return number if number < 1 << 63 else None
