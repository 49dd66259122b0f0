"""The walks of docs/walks.md, each as something that can be done a number of times: a walk is made
ready once, and then walked once for each number it is given."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import oncekey
from bench.profile import street
from bench.serving import BODY
from oncekey.asgi import IdempotencyMiddleware
from oncekey.compose.service import service_of
from oncekey.config import load
from oncekey.core.callers import Callers
from oncekey.testing import signed_delivery

AT_ONCE = 64
OLD_KEYS = 256
_CREATED = 201

Step = Callable[[int, int], Awaitable[Any]]
"""Walk once: with the number of the caller, below AT_ONCE, and one that nobody else has."""


class Place(NamedTuple):
    """Where a walk keeps what it needs. `store` is a URL."""

    folder: Path
    store: str
    most: int
    """No number is higher."""


class Walk(NamedTuple):
    title: str
    ready: Callable[[Place], AbstractAsyncContextManager[Step]]
    store: str = "sqlite"
    times: int = 4000
    """In a round: such that it takes a moment, also where a walk is short."""


# -- a request with a key, through the middleware ----------------------------------------


async def _order(_: Any, receive: Any, send: Any) -> None:
    await receive()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"24")]
    await send({"type": "http.response.start", "status": _CREATED, "headers": headers})
    await send({"type": "http.response.body", "body": b'{"id":"ord_1","ok":true}'})


async def _receive() -> dict[str, Any]:
    return {"type": "http.request", "body": BODY, "more_body": False}


async def _send(message: dict[str, Any]) -> None:
    pass


def _scope(key: bytes) -> dict[str, Any]:
    headers = [
        (b"host", b"127.0.0.1:8000"),
        (b"content-type", b"application/json"),
        (b"content-length", b"23"),
        (b"idempotency-key", key),
    ]
    return {
        "type": "http",
        "method": "POST",
        "path": "/orders",
        "raw_path": b"/orders",
        "query_string": b"",
        "headers": headers,
    }


def _middleware(keys: int | None) -> Callable[[Place], AbstractAsyncContextManager[Step]]:
    """New keys, or so many that were answered before. The app itself does next to nothing."""

    @asynccontextmanager
    async def ready(place: Place) -> AsyncIterator[Step]:
        ledger = oncekey.open(place.store)
        app = IdempotencyMiddleware(_order, ledger=ledger)

        async def step(_: int, number: int) -> None:
            await app(_scope(b"key-%d" % (number % keys if keys else number)), _receive, _send)

        try:
            for number in range(2 * (keys or 0)):
                await step(0, number)
            yield step
        finally:
            await ledger.aclose()

    return ready


# -- through the edge --------------------------------------------------------------------

_EDGE = """
[auth.api_keys]
provider = "local"

[upstreams.service]
url = "http://127.0.0.1:{port}"

[[routes]]
path = "/orders"
methods = ["POST"]
upstream = "service"
policy = "ACCEPTED"
"""


def _edge(way: str) -> Callable[[Place], AbstractAsyncContextManager[Step]]:
    """`new` keys, `old` ones that were answered before, or requests with `none`."""

    @asynccontextmanager
    async def ready(place: Place) -> AsyncIterator[Step]:
        async with street.behind() as port:
            file = place.folder / "edge.toml"
            file.write_text(_EDGE.format(port=port))
            service = service_of(load(file, {}, {"store.url": place.store}))
            secret = (await Callers(service.ledger).create("acme", project="shop"))[1]
            async with (
                street.serving(service) as own,
                street.callers(own, AT_ONCE) as callers,
            ):

                async def step(caller: int, number: int) -> None:
                    lines = {"X-API-Key": secret}
                    if way != "none":
                        key = number % OLD_KEYS if way == "old" else number
                        lines["Idempotency-Key"] = f"key-{key}"
                    status = await callers[caller].ask(street.post("/orders", BODY, lines))
                    assert status == _CREATED, status

                for number in range(2 * OLD_KEYS if way == "old" else 0):
                    await step(0, number)
                yield step

    return ready


# -- a webhook that a workflow waits for -------------------------------------------------

_HOOKS = """
[app]
workflows = "bench.profile.flows:app"

"""
_SECRET = "whsec_only_benchmarks_know_this"


@asynccontextmanager
async def _webhook(place: Place) -> AsyncIterator[Step]:
    from bench.profile.flows import app, ended, wait
    from oncekey.compose.webhooks import sources_of
    from oncekey.webhooks.then import parse_then

    file = place.folder / "hooks.toml"
    file.write_text(_HOOKS)
    settings = load(file, {}, {"store.url": place.store})
    service = service_of(settings)
    async with street.serving(service) as port, street.callers(port, AT_ONCE) as callers:
        then = parse_then('resolve:"stripe:" + body.data.object.id')
        sources = sources_of(settings, service.ledger)
        source = await sources.create("default", "_tenant", "stripe", then, secret=_SECRET)
        for first in range(0, place.most, AT_ONCE):
            numbers = range(first, min(first + AT_ONCE, place.most))
            await asyncio.gather(*(app.start(wait, f"stripe:ch_{each}") for each in numbers))

        async def step(caller: int, number: int) -> None:
            over = ended(f"stripe:ch_{number}")
            data = {"id": f"evt_{number}", "data": {"object": {"id": f"ch_{number}", "amount": 1}}}
            body = json.dumps(data).encode()
            lines = signed_delivery("stripe", body, _SECRET).headers
            path = f"/api/v1/webhooks/stripe/{source.id}"
            status = await callers[caller].ask(street.post(path, body, lines))
            assert status == 200, status
            await over

        yield step


# -- a workflow --------------------------------------------------------------------------


def _workflow(steps: int) -> Callable[[Place], AbstractAsyncContextManager[Step]]:
    @asynccontextmanager
    async def ready(place: Place) -> AsyncIterator[Step]:
        from bench.apps.flows_oncekey import OncekeyFlows

        flows = OncekeyFlows(place.store)
        await flows.open()

        async def step(_: int, number: int) -> None:
            assert await flows.run(steps, number) == number + steps

        try:
            yield step
        finally:
            await flows.close()

    return ready


WALKS = {
    "request-new": Walk("A request with a new key, ASGI middleware", _middleware(None)),
    "request-replay": Walk("A retry, ASGI middleware", _middleware(OLD_KEYS), times=40_000),
    "edge-new": Walk("A new key through the edge", _edge("new")),
    "edge-replay": Walk("A retry at the edge", _edge("old"), times=20_000),
    "edge-pass": Walk("A request without a key through the edge", _edge("none"), times=10_000),
    "webhook": Walk("A webhook, and the workflow that waits for it", _webhook, times=1500),
    "workflow": Walk("A workflow of one step", _workflow(1)),
    "request-new-postgres": Walk(
        "A request with a new key, ASGI middleware", _middleware(None), "postgres"
    ),
    "edge-new-postgres": Walk("A new key through the edge", _edge("new"), "postgres"),
    "edge-new-restate": Walk("A new key through the edge", _edge("new"), "restate", 1500),
    "edge-replay-restate": Walk("A retry at the edge", _edge("old"), "restate"),
}
