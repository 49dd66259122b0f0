"""What is laid on a walk: each instrument is entered before the first step and left after the last,
and then has figures. One at a time: all but the clock make a walk slower."""

from __future__ import annotations

import cProfile
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

_READY_SECONDS = 20.0
# So many samples in a second; a prime, so that nothing that comes round is always or never seen.
_RATE = 499
_LONGEST = 600
# Calls of the kernel, and what they tell.
SYSCALLS = {
    "fdatasync": "syncs",
    "epoll_pwait": "turns of the loop",
    "futex": "futexes",
    "pwrite64": "writes to the database",
}


class Instrument:
    """`figures` are those of the whole walk; whoever asks divides them by its times."""

    def __init__(self) -> None:
        self.figures: dict[str, float] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


class Clock(Instrument):
    """Seconds of all threads and of the loop's own, thread switches, and bytes for the disk."""

    def __enter__(self) -> Self:
        self._before = _used()
        return self

    def __exit__(self, *_: object) -> None:
        after = _used()
        self.figures = {name: after[name] - self._before[name] for name in after}


def _used() -> dict[str, float]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    lines = Path("/proc/self/io").read_text().splitlines()
    io = {name: int(value) for name, value in (line.split(": ") for line in lines)}
    return {
        "cpu": time.process_time(),
        "loop": time.thread_time(),
        "wall": time.perf_counter(),
        "switches": usage.ru_nvcsw + usage.ru_nivcsw,
        "bytes": io["write_bytes"],
    }


class Calls(Instrument):
    """Calls of functions, in the thread of the loop and in those that begin after this was made."""

    def __init__(self) -> None:
        super().__init__()
        self._profiles = [cProfile.Profile()]
        threading.setprofile(self._follow)

    def _follow(self, *_: Any) -> None:
        profile = cProfile.Profile()
        self._profiles.append(profile)
        # Takes the place of this function in its thread.
        profile.enable()

    def __enter__(self) -> Self:
        self._profiles[0].enable()
        self._before = self._counted()
        return self

    def __exit__(self, *_: object) -> None:
        after = self._counted()
        self._profiles[0].disable()
        self.figures = {name: after[name] - self._before[name] for name in after}

    def _counted(self) -> dict[str, float]:
        found = {"calls": 0.0, "statements": 0.0}
        for profile in list(self._profiles):
            for entry in profile.getstats():
                found["calls"] += entry.callcount
                if isinstance(entry.code, str) and "'execute' of 'sqlite3" in entry.code:
                    found["statements"] += entry.callcount
        return found


class Syscalls(Instrument):
    """Calls of the kernel, where there is strace."""

    def __enter__(self) -> Self:
        self._program = shutil.which("strace")
        if self._program:
            self._out = Path(tempfile.mkstemp(prefix="strace-")[1])
            wanted = f"trace={','.join(SYSCALLS)}"
            words = ["-f", "-c", "-U", "name,calls", "-e", wanted, "-o", str(self._out)]
            self._tracer = _attached([self._program, *words, "-p", str(os.getpid())], b"attached")
        return self

    def __exit__(self, *_: object) -> None:
        if self._program:
            _end(self._tracer)
            found = dict(re.findall(r"(?m)^(\w+) +(\d+)$", self._out.read_text()))
            self._out.unlink()
            self.figures = {told: float(found.get(name, 0)) for name, told in SYSCALLS.items()}


class Allocations(Instrument):
    """Of memory, by whoever: also those that CPython serves from what it has."""

    def __enter__(self) -> Self:
        self._out = Path(tempfile.mkdtemp(prefix="memray-")) / "walk.bin"
        self._tracker: Any = None
        with suppress(ImportError):
            from memray import Tracker

            self._tracker = Tracker(self._out, trace_python_allocators=True)
            self._tracker.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        if self._tracker is not None:
            from memray import FileReader

            self._tracker.__exit__(None, None, None)
            with FileReader(self._out) as reader:
                self.figures = {"allocations": reader.metadata.total_allocations}
        shutil.rmtree(self._out.parent)


class Stacks(Instrument):
    """Where the threads that run are, again and again: `folded` has a line for each stack."""

    folded = ""

    def __enter__(self) -> Self:
        program = Path(sys.executable).parent / "py-spy"
        self._sampler: subprocess.Popen[bytes] | None = None
        if program.exists():
            self._out = Path(tempfile.mkstemp(prefix="stacks-")[1])
            words = ["--format", "raw", "--function", "--threads", "--rate", str(_RATE)]
            words += ["--duration", str(_LONGEST), "--output", str(self._out)]
            command = [str(program), "record", *words, "--pid", str(os.getpid())]
            self._sampler = _attached(command, b"Sampling")
        return self

    def __exit__(self, *_: object) -> None:
        if self._sampler is not None:
            _end(self._sampler)
            self.folded = self._out.read_text()
            self._out.unlink()


def _attached(command: list[str], sign: bytes) -> subprocess.Popen[bytes]:
    """A process that looks at this one, once it says so."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout
    os.set_blocking(process.stdout.fileno(), False)
    heard, deadline = b"", time.monotonic() + _READY_SECONDS
    while sign not in heard and process.poll() is None and time.monotonic() < deadline:
        heard += process.stdout.read() or b""
        time.sleep(0.01)
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)
    process.wait(_READY_SECONDS)


INSTRUMENTS: dict[str, type[Instrument]] = {
    "clock": Clock,
    "calls": Calls,
    "syscalls": Syscalls,
    "allocations": Allocations,
    "stacks": Stacks,
}
