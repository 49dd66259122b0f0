"""A service that may have to wait for its store: a cluster is often started together with those
that use it."""

from __future__ import annotations

import asyncio
import time

import click

from oncekey.cli.failure import Failure
from oncekey.compose.address import Restate, address_of
from oncekey.compose.service import Service, service_of
from oncekey.config import Settings
from oncekey.core.errors import StoreUnavailable

_LOOK_AGAIN = 0.5


def started(settings: Settings) -> Service:
    """Raises `Failure` for a cluster that does not answer in time."""
    address = address_of(settings.store.url)
    if not isinstance(address, Restate):
        return service_of(settings)
    patience = settings.restate.startup_timeout
    deadline = time.monotonic() + patience
    is_told = False
    while True:
        made = _try(settings, address)
        if isinstance(made, Service):
            return made
        if time.monotonic() > deadline:
            hint = f"gave up after {patience:g} s, which restate.startup_timeout says"
            raise Failure(f"{made}; {hint}")
        if not is_told:
            click.echo(f"Waiting for Restate, up to {patience:g} s: {made}", err=True)
            is_told = True
        time.sleep(_LOOK_AGAIN)


def _try(settings: Settings, address: Restate) -> Service | str:
    """The service, or what is in its way."""
    from oncekey.stores.restate.checking import obstacle_to
    from oncekey.stores.restate.place import place_of

    obstacle = asyncio.run(obstacle_to(place_of(address.url)))
    if obstacle is not None:
        return obstacle
    try:
        return service_of(settings)
    except StoreUnavailable as error:
        return str(error)
