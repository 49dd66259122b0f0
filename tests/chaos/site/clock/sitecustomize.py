"""A wall clock that can be set: every process that finds this folder first has it from its start.

The file that CHAOS_CLOCK names holds by how many nanoseconds the clock is off. Steady clocks stay
as they are, as they do on a machine whose clock is set.
"""

import mmap
import os
import struct
import time


def _set_up(file: str) -> None:
    with open(file, "r+b") as opened:  # noqa: PTH123 - before anything else is imported
        offset = mmap.mmap(opened.fileno(), 8)
    read, real = struct.Struct("<q").unpack_from, time.time_ns

    def time_ns() -> int:
        return real() + read(offset)[0]

    time.time_ns = time_ns
    time.time = lambda: time_ns() / 1e9


if "CHAOS_CLOCK" in os.environ:
    _set_up(os.environ["CHAOS_CLOCK"])
