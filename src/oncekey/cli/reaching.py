"""What is behind the edge, tried from here: upstreams, and the keys of tokens."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Awaitable
from typing import NamedTuple

from oncekey.config import JwtSettings, Settings, UpstreamSettings
from oncekey.core.errors import OnceKeyError, StoreUnavailable

_PATIENCE = 5.0
_NOT_FOUND = 404


class Reached(NamedTuple):
    name: str
    url: str
    found: str
    ok: bool

    def __str__(self) -> str:
        return f"{self.name}: {self.url}, {self.found}"


async def reached_by(settings: Settings) -> AsyncIterator[Reached]:
    """Each in the order of the configuration; all are tried at once."""
    tries: list[Awaitable[Reached]] = [
        _upstream(name, each) for name, each in settings.upstreams.items()
    ]
    if settings.auth.jwt is not None and settings.auth.jwt.jwks_url is not None:
        tries.append(_keys(settings.auth.jwt, settings.auth.jwt.jwks_url))
    for each in await asyncio.gather(*tries):
        yield each


async def _upstream(name: str, each: UpstreamSettings) -> Reached:
    try:
        async with asyncio.timeout(each.connect_timeout):
            await _connect(each.url)
    except TimeoutError:
        found = f"not reachable: no connection in {each.connect_timeout:g} s"
        return Reached(f"upstream {name}", each.url, found, ok=False)
    except OSError as error:
        found = f"not reachable: {_reason(error)}"
        return Reached(f"upstream {name}", each.url, found, ok=False)
    trouble = await _trouble_with_handler(each.url)
    return Reached(f"upstream {name}", each.url, trouble or "reachable", ok=not trouble)


async def _connect(url: str) -> None:
    from oncekey.edge.services.place import is_service, read_service
    from oncekey.upstream.address import address_of

    address = address_of(read_service(url).ingress[0] if is_service(url) else url)
    if address.socket:
        _, writer = await asyncio.open_unix_connection(address.socket)
    else:
        context = ssl.create_default_context() if address.tls else None
        _, writer = await asyncio.open_connection(address.host, address.port, ssl=context)
    writer.close()


async def _trouble_with_handler(url: str) -> str:
    """Why requests would fail at a Restate that answers: some only when a key is used once more,
    and Restate has to be told to forget it."""
    from oncekey.edge.services.place import is_service, read_service
    from oncekey.stores.restate.admin import Admin

    if not is_service(url):
        return ""
    place = read_service(url)
    admin = Admin(place.admin)
    path = f"/services/{place.service}/handlers/{place.handler}"
    try:
        reply = await admin.ask("GET", path, patience=_PATIENCE)
    except StoreUnavailable:
        nodes = ", ".join(place.admin)
        return f"reachable, but not its admin API {nodes}: name it with ?admin=host:9070"
    finally:
        await admin.close()
    if reply.status == _NOT_FOUND:
        named = f"{place.service}/{place.handler}"
        return f"reachable, but knows no {named}: register the service with it"
    return ""


async def _keys(jwt: JwtSettings, url: str) -> Reached:
    from oncekey.edge.identity.jwk import ring_of_jwks
    from oncekey.edge.identity.jwks import MAX_JWKS
    from oncekey.edge.identity.remote import Remote

    remote = Remote(timeout=_PATIENCE, most=MAX_JWKS)
    try:
        pinned = None if jwt.algorithms is None else frozenset(jwt.algorithms)
        count = len(ring_of_jwks(await remote.get(url), pinned).keys)
    except OnceKeyError as error:
        return Reached("auth.jwt.jwks_url", url, f"not usable: {error}", ok=False)
    except ValueError as error:
        return Reached("auth.jwt.jwks_url", url, f"no JWKS: {error}", ok=False)
    finally:
        await remote.close()
    found = f"{count} key{'' if count == 1 else 's'} that fit{'s' if count == 1 else ''}"
    return Reached("auth.jwt.jwks_url", url, found, ok=count > 0)


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
