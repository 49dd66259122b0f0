"""uvicorn around the service: one process, or several on one socket."""

from __future__ import annotations

import asyncio
import functools
import os
import resource
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import click
import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from oncekey.cli.banner import Banner, cluster_lines
from oncekey.cli.failure import Failure
from oncekey.cli.garbage import collect_seldom
from oncekey.cli.reload import Reload, Rereading, Terminal, hold, staying, was_held
from oncekey.cli.samples import demo_admin_key, demo_key, demo_webhook
from oncekey.cli.starting import started
from oncekey.compose.service import Service, service_of
from oncekey.config import Settings
from oncekey.edge.serving.lane import EdgeProtocol
from oncekey.observe.log import write_log
from oncekey.webhooks.sources import Source

_NO_START = "the app did not start; what it said about it is above"


def run(settings: Settings, read: Callable[[], Settings]) -> None:
    """Serve until told to stop; running requests and steps finish, then the ledger is closed.

    `read` answers the settings anew, when SIGHUP says that they are others.
    """
    hold()
    writing = write_log(settings.log.format, settings.log.level)
    try:
        _serve(settings, read)
    except Failure:
        # Lines are written beside everything else, and it is about some of them.
        writing.close()
        raise


def _serve(settings: Settings, read: Callable[[], Settings]) -> None:
    _allow_connections()
    service = started(settings)
    try:
        listening = _listen(settings)
        made = asyncio.run(_made_to_try(settings, service))
    except BaseException:
        service.at_end()
        raise
    port = listening.getsockname()[1]
    banner = Banner(settings, port, service.has_api, service.console is not None, *made)
    if settings.server.workers > 1:
        banner = banner._replace(cluster=cluster_lines(service.ledger))
        # It was built to see that it can be; each worker builds its own.
        service.at_end()
        _run_workers(settings, Rereading(read), listening, banner)
    else:
        _run_alone(settings, Rereading(read), service, listening, banner)


def _run_alone(
    settings: Settings,
    rereading: Rereading,
    service: Service,
    listening: socket.socket,
    banner: Banner,
) -> None:
    _ignore_second_signals()
    config = _uvicorn(settings, functools.partial(_stopping, service))

    def hear() -> None:
        Reload(service, settings, rereading).hear()

    try:
        _Server(config, service, banner, hear).run(sockets=[listening])
    except SystemExit as ended:
        raise Failure(_NO_START) from ended


def _run_workers(
    settings: Settings, rereading: Rereading, listening: socket.socket, banner: Banner
) -> None:
    click.echo(banner.text(settings.server.grpc_port))
    # Only this account may look into it.
    with TemporaryDirectory(prefix="oncekey-") as folder:
        workers = _Workers(settings, rereading, listening, Path(folder))
        workers.run()
    if any(process.exitcode == STARTUP_FAILURE for process in workers.processes):
        raise Failure(_NO_START)


async def _made_to_try(
    settings: Settings, service: Service
) -> tuple[str | None, Source | None, str | None]:
    ledger = service.ledger
    secret = await demo_key(ledger) if settings.auth.api_keys.demo else None
    webhook = await demo_webhook(settings, ledger)
    wanted = settings.console.demo and service.console is not None
    return secret, webhook, await demo_admin_key(ledger) if wanted else None


def _worker(settings: Settings, rereading: Rereading, folder: Path) -> Service:
    """The service of a process that says nothing, told of the signals that are about it."""
    write_log(settings.log.format, settings.log.level)
    service = _stopping(service_of(settings, folder))
    collect_seldom()
    Reload(service, settings, rereading).hear()
    return service


def _stopping(service: Service) -> Service:
    """The service, told of the signal that ends it before requests are waited for. uvicorn builds
    its app on the loop, when it has set its own handlers."""
    loop = asyncio.get_running_loop()

    def stop(then: Any, number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(service.let_go)
        then(number, frame)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, functools.partial(stop, signal.getsignal(number)))
    return service


class _Workers(Multiprocess):
    """Processes on one socket. SIGHUP has them read the configuration, where uvicorn would end each
    and start another."""

    def __init__(
        self, settings: Settings, rereading: Rereading, listening: socket.socket, folder: Path
    ) -> None:
        self._settings = settings
        self._rereading = rereading
        self._folder = folder
        self._terminal = Terminal()
        super().__init__(_uvicorn(settings, self._ready_with(settings)), sockets=[listening])

    def handle_signals(self) -> None:
        if was_held():
            self.handle_hup()
        super().handle_signals()

    def handle_hup(self) -> None:
        if self._terminal.is_gone:
            self.should_exit.set()
            return
        settings = self._rereading.after(self._settings)
        if settings is None:
            return
        with staying() as stays:
            # To see that it can be built: workers that cannot start would end the server.
            service_of(settings).at_end()
        if stays:
            return
        self._settings = settings
        # For a worker that takes the place of one that died.
        self.config.app = self._ready_with(settings)
        for process in self.processes:
            if process.pid is not None and process.exitcode is None:
                os.kill(process.pid, signal.SIGHUP)
        self._rereading.tell()

    def _ready_with(self, settings: Settings) -> Callable[[], Service]:
        rereading = self._rereading._replace(is_worker=True)
        return functools.partial(_worker, settings, rereading, self._folder)


class _Server(uvicorn.Server):
    """Says what it serves once it does, and hears then what there is to say to it."""

    def __init__(
        self, config: uvicorn.Config, service: Service, banner: Banner, hear: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._service = service
        self._banner = banner
        self._hear = hear

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        collect_seldom()
        durable = self._service.durable
        banner = self._banner._replace(cluster=cluster_lines(self._service.ledger))
        click.echo(banner.text(durable.grpc_port if durable else None))
        self._hear()


def _uvicorn(settings: Settings, ready: Callable[[], Service]) -> uvicorn.Config:
    return uvicorn.Config(
        ready,
        factory=True,
        workers=settings.server.workers,
        lifespan="on",
        http=EdgeProtocol,
        # Who is at the other end is what the connection says, and nobody else.
        proxy_headers=False,
        server_header=False,
        # Ours are set up already.
        log_config=None,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=max(1, round(settings.server.grace)),
        # A worker answers nothing while it imports the app; on a busy machine that takes its time.
        timeout_worker_healthcheck=15,
    )


def _listen(settings: Settings) -> socket.socket:
    """A socket that takes connections from now on: whoever reads the banner may use it."""
    host, port = settings.server.host, settings.server.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        hint = "choose another with --port or ONCEKEY_SERVER__PORT, or 0 for any"
        raise Failure(f"cannot listen on {host}:{port}: {_reason(error)}; {hint}") from error


def _allow_connections() -> None:
    """As many as this account may have: those who only connect must not use up what others need."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # Some systems have a limit of their own below the one they tell.
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)


def _ignore_second_signals() -> None:
    """uvicorn raises the signal it was stopped by once more, which would end us as if killed."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
