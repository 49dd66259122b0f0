"""The spans of runs: one from when a run goes on until it waits again, or is over."""

from __future__ import annotations

from contextvars import Context
from typing import TYPE_CHECKING, Any

from oncekey.core.ledger import Ledger

if TYPE_CHECKING:
    from oncekey.durable.embedded.run import Run


class Spans:
    """Does nothing where nobody traces."""

    def __init__(self, ledger: Ledger) -> None:
        self._tracing = None if ledger.watch is None else ledger.watch.tracing
        self._open: dict[int, Any] = {}

    def begin(self, run: Run) -> None:
        if self._tracing is not None and run.id not in self._open:
            self._open[run.id] = self._tracing.resume(run.id, run.definition.name)

    def inside(self, run: Run) -> Context | None:
        """The context to run it in; None for that of whoever starts it."""
        return None if self._tracing is None else self._tracing.inside(run.id)

    def end(self, run: Run) -> None:
        if self._tracing is not None and run.id in self._open:
            self._open.pop(run.id).end()

    def resolved(self, number: int) -> None:
        """What is under way has woken that execution, wherever it goes on."""
        if self._tracing is not None:
            self._tracing.resolve(number)
