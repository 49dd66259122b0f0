"""The walks lead along the code: every name exists, and the numbered ones are called in order."""

import importlib
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import httpx
import pytest

import oncekey
from oncekey import App
from oncekey.asgi import IdempotencyMiddleware
from oncekey.stores.queries import load
from tests.fixtures.edge_site import token
from tests.fixtures.edge_thread import edge_before
from tests.fixtures.http.servers import serving
from tests.fixtures.pages import DOCS
from tests.fixtures.post import TENANT, post_on

PAGE = (DOCS / "walks.md").read_text()
NAME = r"(?:core|durable|edge|integrations|stores|upstream|webhooks|wire)(?:\.\w+)+"
NAMES = sorted(set(re.findall(rf"`({NAME})`", PAGE)))
QUERIES = sorted(set(re.findall(r"`(sqlite|postgres)/(\w+)`", PAGE)))


def object_of(name: str) -> Any:
    """The object of a name: the longest module that can be imported, then its attributes."""
    parts = ["oncekey", *name.split(".")]
    for length in range(len(parts), 1, -1):
        try:
            there: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[length:]:
            there = getattr(there, attribute)
        return there
    raise LookupError(name)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_exists(name: str) -> None:
    assert callable(object_of(name))


@pytest.mark.parametrize("dialect, query", QUERIES)
def test_every_query_exists(dialect: str, query: str) -> None:
    assert query in load(dialect)


# -- the order -------------------------------------------------------------------------------


def steps(heading: str) -> list[str]:
    """The first name of each numbered item below a heading."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    found = re.findall(rf"(?m)^(\d+)\. `({NAME})`", section)
    assert [int(number) for number, _ in found] == list(range(1, len(found) + 1))
    return [name for _, name in found]


class Trace:
    """Names of our functions in the order in which they are first called, in any thread."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("oncekey."):
            self.names.setdefault(f"{module}.{frame.f_code.co_qualname}".removeprefix("oncekey."))

    def order_of(self, names: list[str]) -> list[str]:
        return [name for name in self.names if name in set(names)]


@contextmanager
def traced(trace: Trace) -> Iterator[None]:
    sys.setprofile(trace)
    threading.setprofile(trace)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


async def shop(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "http.response.start", "status": 201, "headers": []})
    await send({"type": "http.response.body", "body": b"ordered"})


@pytest.mark.anyio
async def test_the_numbered_steps_are_called_in_this_order(tmp_path: Path) -> None:
    trace = Trace()
    called = []
    with traced(trace):
        ledger = oncekey.open(f"sqlite:///{tmp_path}/oncekey.db")
        transport = httpx.ASGITransport(IdempotencyMiddleware(shop, ledger=ledger))
        async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
            for _ in range(2):
                trace.names.clear()
                await client.post("/orders", headers={"Idempotency-Key": "tea-1"}, content=b"tea")
                called.append(dict(trace.names))
        ledger.close()
    headings = ("Walk 1: a request with a key", "Walk 1, second part: a retry")
    for heading, names in zip(headings, called, strict=True):
        trace.names = names
        assert trace.order_of(steps(heading)) == steps(heading)


@pytest.mark.anyio
async def test_a_delivery_goes_its_way_in_this_order(tmp_path: Path) -> None:
    trace = Trace()
    ledger = oncekey.open(f"sqlite:///{tmp_path}/oncekey.db")
    async with post_on(ledger, App()) as post:
        stripe = await post.webhook("stripe", 'resolve:"stripe:" + body.id')
        await post.app.engine.create_promise(TENANT, "payment", key="stripe:evt_1")
        with traced(trace):
            assert (await stripe.deliver({"id": "evt_1"})).status == 200
    ledger.close()
    expected = steps("Walk 2: a webhook")
    assert trace.order_of(expected) == expected


def test_a_request_goes_through_the_edge_in_this_order(tmp_path: Path) -> None:
    trace = Trace()
    who = {"Authorization": f"Bearer {token()}"}
    with (
        serving("asgi", shop) as port,
        traced(trace),
        edge_before(port, tmp_path) as url,
        httpx.Client(base_url=url, headers=who) as client,
    ):
        client.get("/api/v1/orders")
        trace.names.clear()
        key = {"Idempotency-Key": "tea-1"}
        assert client.post("/api/v1/orders", headers=key, content=b"tea").status_code == 201
        called = dict(trace.names)
    trace.names = called
    expected = steps("Walk 3: through the edge")
    assert trace.order_of(expected) == expected
