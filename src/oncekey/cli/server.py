"""uvicorn around the application: one process, or several on one socket."""

from __future__ import annotations

import functools
import os
import signal
import socket
from typing import Any

import click
import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from oncekey.cli.banner import banner_of
from oncekey.cli.failure import Failure
from oncekey.compose.configured import application_of
from oncekey.config import Settings
from oncekey.integrations.lifespan import Lifespan

_NO_START = "the app did not start; what it said about it is above"


def run(settings: Settings) -> None:
    """Serve until told to stop; running requests finish, then the ledger is closed."""
    application = application_of(settings)
    listening = _listen(settings)
    banner = banner_of(settings, listening.getsockname()[1])
    if settings.server.workers > 1:
        # It was built to see that it can be; each worker builds its own.
        application.at_end()
        _run_workers(settings, listening, banner)
    else:
        _run_alone(settings, application, listening, banner)


def _run_alone(
    settings: Settings, application: Lifespan, listening: socket.socket, banner: str
) -> None:
    _ignore_second_signals()
    try:
        _Server(_uvicorn(settings, application), banner).run(sockets=[listening])
    except SystemExit as ended:
        raise Failure(_NO_START) from ended


def _run_workers(settings: Settings, listening: socket.socket, banner: str) -> None:
    click.echo(banner)
    build = functools.partial(application_of, settings)
    workers = Multiprocess(_uvicorn(settings, build, factory=True), sockets=[listening])
    workers.run()
    if any(process.exitcode == STARTUP_FAILURE for process in workers.processes):
        raise Failure(_NO_START)


class _Server(uvicorn.Server):
    """Says what it serves once it does."""

    def __init__(self, config: uvicorn.Config, banner: str) -> None:
        super().__init__(config)
        self._banner = banner

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        click.echo(self._banner)


def _uvicorn(settings: Settings, app: Any, *, factory: bool = False) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        factory=factory,
        workers=settings.server.workers,
        lifespan="on",
        log_level="warning",
        timeout_graceful_shutdown=max(1, round(settings.server.grace)),
    )


def _listen(settings: Settings) -> socket.socket:
    """A socket that takes connections from now on: whoever reads the banner may use it."""
    host, port = settings.server.host, settings.server.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        hint = "choose another with --port, or 0 for any"
        raise Failure(f"cannot listen on {host}:{port}: {_reason(error)}; {hint}") from error


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)


def _ignore_second_signals() -> None:
    """uvicorn raises the signal it was stopped by once more, which would end us as if killed."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
