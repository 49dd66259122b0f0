"""Drives a process that takes orders on its standard input and answers each with a line of JSON."""

import json
import os
import select
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.load import LoadFailed
from bench.machine import SERVER_CPU, pinned
from bench.services import end, log_tail
from bench.serving import ROOT

# Far beyond what any order takes: a process that hangs is not waited for.
ANSWER_SECONDS = 300.0


class Worker:
    """One process of `bench/apps`, on the core of the servers, until it is left."""

    def __init__(self, module: str, arguments: list[str], log: Path) -> None:
        self._log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                pinned(SERVER_CPU, [sys.executable, "-m", f"bench.apps.{module}", *arguments]),
                env={**os.environ, "PYTHONPATH": _path()},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        end(self._process)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                # Whoever was to read an order may be gone.
                with suppress(OSError):
                    pipe.close()

    def kill(self) -> None:
        """As a machine that loses its power would: nothing is tidied up."""
        self._process.kill()
        self._process.wait()

    def order(self, *words: object) -> dict[str, float]:
        assert self._process.stdin
        assert self._process.stdout
        try:
            self._process.stdin.write(f"{' '.join(map(str, words))}\n".encode())
            self._process.stdin.flush()
            if not select.select([self._process.stdout], [], [], ANSWER_SECONDS)[0]:
                raise LoadFailed(f"{words[0]}: no answer for {ANSWER_SECONDS:g} s")
            found: dict[str, float] = json.loads(self._process.stdout.readline())
        except (OSError, ValueError) as error:
            raise LoadFailed(f"the process stopped: {log_tail(self._log)}") from error
        return found


def _path() -> str:
    """Where the bench is, and whatever else this process looks in: the same source runs."""
    return os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
