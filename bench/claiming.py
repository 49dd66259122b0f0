"""Drives a claimer process: the ledger under load without HTTP."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.load import LoadFailed
from bench.machine import SERVER_CPU, pinned
from bench.services import end, log_tail
from bench.serving import ROOT


class Claimer:
    """One process with one ledger open; see bench/apps/claimer.py for the orders it takes."""

    def __init__(self, database: Path) -> None:
        self._log = database.with_suffix(".log")
        command = [sys.executable, "-m", "bench.apps.claimer", f"sqlite:///{database}"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                pinned(SERVER_CPU, command),
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
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

    def claim(self, seconds: float) -> dict[str, float]:
        return self._order(f"claim {seconds}")

    def claim_while_sweeping(self) -> dict[str, float]:
        return self._order("sweep")

    def _order(self, text: str) -> dict[str, float]:
        assert self._process.stdin
        assert self._process.stdout
        try:
            self._process.stdin.write(f"{text}\n".encode())
            self._process.stdin.flush()
            found: dict[str, float] = json.loads(self._process.stdout.readline())
        except (OSError, ValueError) as error:
            raise LoadFailed(f"the claimer stopped: {log_tail(self._log)}") from error
        return found
