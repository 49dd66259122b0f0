"""SIGHUP: the configuration is read again, and put in force when it is right."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

import click

from oncekey.cli.failure import Failure
from oncekey.cli.text import escaped
from oncekey.compose.address import without_secrets
from oncekey.compose.service import Service
from oncekey.config import Settings
from oncekey.config.changes import change_of
from oncekey.core.errors import OnceKeyError

log = logging.getLogger("oncekey")

HANGUP: signal.Signals | None = getattr(signal, "SIGHUP", None)
"""None on systems that have no such signal."""


class Rereading(NamedTuple):
    """How to read the configuration again. A worker leaves the talking to the process it is of."""

    read: Callable[[], Settings]
    is_worker: bool = False

    def after(self, settings: Settings) -> Settings | None:
        """What can take the place of `settings`; None says to stay, and why was logged."""
        with staying() as stays:
            settings, waiting = change_of(settings, self.read())
            if waiting and not self.is_worker:
                log.warning("%s: in force after a restart, and not before", ", ".join(waiting))
        return None if stays else settings

    def tell(self) -> None:
        if not self.is_worker:
            # The terminal or pipe it started on may be closed.
            with suppress(OSError):
                click.echo("The configuration was read again.")


@contextmanager
def staying() -> Iterator[list[str]]:
    """Mistakes inside the block are logged, a line each; the list tells whether there were any."""
    mistakes: list[str] = []
    try:
        yield mistakes
    except (OnceKeyError, Failure) as error:
        mistakes += str(error).splitlines() or [type(error).__name__]
        for line in mistakes:
            log.error("%s", escaped(without_secrets(line)))  # noqa: TRY400 - told without a trace
    except Exception:
        # Of the user's own modules, which the configuration names.
        log.exception("the configuration cannot be put in force")
        mistakes.append("")
    if mistakes:
        log.error("the configuration stays as it was")


class Reload:
    """Puts the configuration in force anew, on the loop, whenever it is told to."""

    def __init__(self, service: Service, settings: Settings, rereading: Rereading) -> None:
        self._service = service
        self._settings = settings
        self._rereading = rereading
        self._terminal = Terminal()
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._asked = False

    def hear(self) -> None:
        """Be told by SIGHUP from now on, and of one that waits already."""
        if HANGUP is not None:
            signal.signal(HANGUP, self._signalled)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {HANGUP})

    def _signalled(self, *_: object) -> None:
        if self._terminal.is_gone:
            signal.raise_signal(signal.SIGTERM)
            return
        # The loop is closed already when the signal comes at the very end.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._begin)

    def _begin(self) -> None:
        self._asked = True
        # Whoever asks meanwhile has the file read once more, not side by side.
        if self._task is None or self._task.done():
            self._task = self._loop.create_task(self._run(), name="oncekey-reload")

    async def _run(self) -> None:
        while self._asked:
            self._asked = False
            await self.run_once()

    async def run_once(self) -> None:
        settings = await asyncio.to_thread(self._rereading.after, self._settings)
        if settings is None:
            return
        with staying() as stays:
            await self._service.reload(settings)
        if not stays:
            self._settings = settings
            self._rereading.tell()


def hold() -> None:
    """From now on the signal waits, here and in the processes that are started from here, for who
    can act on it. It would end a process that is about to start."""
    if HANGUP is not None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {HANGUP})


def was_held() -> bool:
    """Whether it has come since it waits, and was not asked for so far."""
    if HANGUP is None or HANGUP not in signal.sigpending():
        return False
    signal.sigwait({HANGUP})
    return True


class Terminal:
    """The one the server was started on, if any. Closing it sends the same signal, and nobody is
    left then to stop the server by hand."""

    def __init__(self) -> None:
        self._was_there = _is_there()

    @property
    def is_gone(self) -> bool:
        return self._was_there and not _is_there()


def _is_there() -> bool:
    try:
        return sys.stdin.isatty()
    except (AttributeError, ValueError, OSError):
        return False
