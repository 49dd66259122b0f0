"""What is wrong with a cluster, tried from here, with nothing changed: `oncekey check` tells it."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from oncekey.core.errors import ConfigurationError, StoreError, StoreUnavailable, UpstreamError
from oncekey.stores.restate.admin import Admin
from oncekey.stores.restate.deployments import Deployments
from oncekey.stores.restate.endpoint import Endpoint
from oncekey.stores.restate.nodes import Nodes, Reply
from oncekey.stores.restate.objects import add_to_service, new_service
from oncekey.stores.restate.place import RestatePlace
from oncekey.stores.restate.request import SERVICE

_HEALTH, _VERSION = b"/restate/health", b"/version"
_NAMED = {"ingress": "in the store url", "admin API": "with admin= in the store url"}
_PATIENCE = 5.0
_OK = 200
# All partitions are asked, and answer only when somebody leads them.
_EVERY_PARTITION = "SELECT count(*) AS n FROM sys_invocation_status"


class Seen(NamedTuple):
    """What there is, and what is not as it should be but need not be wrong."""

    found: list[str]
    warnings: list[str]


async def look_at(place: RestatePlace) -> Seen:
    """Raises `StoreError` or `ConfigurationError` for what cannot work."""
    seen = Seen([], [])
    await _reach("ingress", place.ingress, _HEALTH, seen)
    version = await _reach("admin API", place.admin, _VERSION, seen)
    admin = Admin(place.admin)
    try:
        seen.found.append(f"reachable, Restate {msgspec.json.decode(version.body)['version']}")
        await _need_leaders(admin)
        await _look_at_endpoint(place, Deployments(admin), seen)
    finally:
        await admin.close()
    return seen


async def obstacle_to(place: RestatePlace) -> str | None:
    """Why nothing can be asked of a cluster; None when it answers."""
    try:
        seen = Seen([], [])
        await _reach("ingress", place.ingress, _HEALTH, seen)
        await _reach("admin API", place.admin, _VERSION, seen)
    except StoreUnavailable as error:
        return str(error).replace("\n", "; ")
    return None


async def _reach(what: str, urls: Sequence[str], path: bytes, seen: Seen) -> Reply:
    """Any node will do; those that do not answer are told."""
    answered: Reply | None = None
    troubles = []
    # One of several may well be away.
    way_out = f"; start Restate, or name its {what} {_NAMED[what]}" if len(urls) == 1 else ""
    for url in urls:
        reply = await _asked(url, path)
        if isinstance(reply, str):
            troubles.append(f"Restate's {what} {url} is not reachable: {reply}{way_out}")
        elif reply.status != _OK or not reply.body.startswith(b"{"):
            troubles.append(f"{url} does not answer as Restate's {what} does; is it another port?")
        else:
            answered = reply
    if answered is None:
        raise StoreUnavailable("\n".join(troubles))
    seen.warnings.extend(troubles)
    return answered


async def _asked(url: str, path: bytes) -> Reply | str:
    """The answer of one node, or why there is none."""
    parts = urlsplit(url)
    nodes = Nodes([url])
    try:
        async with asyncio.timeout(_PATIENCE):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port)
            writer.close()
            return await nodes.ask(b"GET", path, (), b"", timeout=_PATIENCE)
    except TimeoutError:
        return f"no answer within {_PATIENCE:g} s"
    except OSError as error:
        return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
    except UpstreamError as error:
        return str(error)
    finally:
        await nodes.close()


async def _need_leaders(admin: Admin) -> None:
    try:
        await admin.query(_EVERY_PARTITION, patience=_PATIENCE)
    except (StoreError, msgspec.DecodeError, KeyError):
        raise StoreUnavailable(
            "Restate answers, and carries nothing out: a partition has no leader; are enough of "
            "its nodes running?"
        ) from None


# -- the endpoint ------------------------------------------------------------------------------


async def _look_at_endpoint(place: RestatePlace, deployments: Deployments, seen: Seen) -> None:
    there = await deployments.serving(SERVICE)
    if there is not None and await deployments.is_reached(there.uri, patience=_PATIENCE):
        seen.found.append(f"OnceKey's objects are served at {there.uri}")
        if there.uri.startswith(f"{place.endpoint}/"):
            # Whoever listens there is one of us.
            return
    else:
        seen.found.append("nobody serves OnceKey's objects now: `oncekey serve` does")
    await _try_endpoint(place, deployments, seen)


async def _try_endpoint(place: RestatePlace, deployments: Deployments, seen: Seen) -> None:
    if not _is_of_this_machine(place.listens_on[0]):
        seen.warnings.append(
            f"endpoint {place.endpoint} is no address of this machine: it was not tried"
        )
        return
    endpoint = Endpoint(place, deployments, [_probe()])
    try:
        uri = endpoint.try_out()
        obstacle = await deployments.obstacle(uri, patience=_PATIENCE)
    finally:
        await endpoint.close()
    if obstacle is not None:
        raise ConfigurationError(
            f"Restate cannot call this machine at {uri}: {obstacle}; name an address that it "
            "reaches with endpoint= in the store url"
        )
    seen.found.append(f"Restate can call {place.endpoint}")


def _probe() -> Any:
    """Something to be found at the endpoint."""
    made = new_service("oncekey.Probe")

    async def answer(_: Any, body: bytes) -> bytes:
        return body

    add_to_service(made, "answer", answer)
    return made


def _is_of_this_machine(host: str) -> bool:
    with suppress(OSError):
        for family, *_, address in socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM):
            with suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as tried:
                tried.bind(address)
                return True
    return False
