"""`oncekey serve`: an app with its requests made safe to retry, and durable work."""

from __future__ import annotations

import functools
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from oncekey.cli.failure import Failure
from oncekey.cli.options import settings_of
from oncekey.compose.address import Memory, address_of
from oncekey.config import DEFAULT_FILE, Settings


@click.command()
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    envvar="ONCEKEY_CONFIG",
    metavar="FILE",
    help="The configuration file.  [default: ./oncekey.toml, when it exists]",
)
@click.option("--url", metavar="URL", help="The store, in place of the configured one.")
@click.option("--app", metavar="MODULE:APP", help="An ASGI app, or an App of workflows.")
@click.option("--host", help="The address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=int, help="The port; 0 for any that is free.  [default: 8700]")
@click.option("--workers", type=int, metavar="N", help="How many processes.  [default: 1]")
def serve(
    *,
    config: Path | None,
    url: str | None,
    app: str | None,
    host: str | None,
    port: int | None,
    workers: int | None,
) -> None:
    """Make requests safe to retry: to an app, or to services behind.

    Requests with an Idempotency-Key run once; every retry gets the stored answer. Routes of the
    configuration say where a key is required and how long answers are kept; those with an upstream
    are forwarded to the service there, for callers with an API key or a token. Workflows are run
    here, and offered to callers with an API key under /api. [app] workflows in the configuration
    serves them beside an ASGI app. Ctrl-C or SIGTERM lets running requests and steps finish first;
    SIGHUP reads the configuration again, for the requests that come from then on.

    \b
    Examples:
      oncekey serve
      oncekey serve --app shop:app
      oncekey serve --app shop:workflows
      oncekey serve --config examples/quickstart/oncekey.toml --port 9000
      oncekey serve --app shop:app --workers 4 --url postgresql://oncekey@db/app
    """
    options = {
        "store.url": url,
        "app.target": app,
        "server.host": host,
        "server.port": port,
        "server.workers": workers,
    }
    if config is None and DEFAULT_FILE.exists():
        # Once it was there, it is a mistake when it is gone.
        config = DEFAULT_FILE
    read = functools.partial(_settings_to_serve, config, options)
    settings = read()
    try:
        from oncekey.cli.server import run
    except ModuleNotFoundError as error:
        raise Failure(f"serving needs more: pip install 'oncekey[edge]' ({error})") from error
    run(settings, read)


def _settings_to_serve(config: Path | None, options: dict[str, Any]) -> Settings:
    settings = settings_of(config, options)
    _check(settings)
    return settings


def _check(settings: Settings) -> None:
    app, server = settings.app, settings.server
    targets = app.target or app.workflows or server.api or server.grpc_port is not None
    # Routes alone are forwarded, or decided about for a gateway.
    if not (targets or settings.routes):
        raise Failure(
            "there is nothing to serve; name an app with --app module:app, [app] target or "
            "workflows, or add [[routes]] with an upstream"
        )
    if server.workers > 1 and isinstance(address_of(settings.store.url), Memory):
        raise Failure("memory:// lives inside one process; use --workers 1 or another store")
    if server.grpc_port is not None and find_spec("grpc") is None:
        raise Failure("server.grpc_port needs gRPC: pip install 'oncekey[grpc]'")
