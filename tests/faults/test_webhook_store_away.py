"""The line to the database is cut in the middle of a delivery: the next attempt ends it, once."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

import oncekey
from oncekey import Ledger
from tests.fixtures.doomed_post import office
from tests.fixtures.post import TENANT, post_on
from tests.fixtures.postgres_schema import new_schema
from tests.fixtures.postgres_server import PostgresServer
from tests.fixtures.proxy import GROUP, Proxy

pytestmark = [pytest.mark.postgres, pytest.mark.anyio]

EVENT = {"id": "evt_1"}
BODY = b'{"id": "evt_1"}'
# What is sent when each is done, and kept: a start is a message of its own.
DONE_BY = {"workflow:note": BODY, "event:'noted'": b"COMMIT", "resolve:body.id": b"COMMIT"}


class Trip:
    """Does something when a named point is reached, once."""

    def __init__(self) -> None:
        self.point = ""
        self.act: Callable[[], None] = lambda: None

    def __call__(self, point: str) -> None:
        if point == self.point:
            self.point = ""
            self.act()


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[Proxy]:
    with closing(Proxy(postgres.port)) as opened:
        yield opened


@pytest.fixture
def trip() -> Trip:
    return Trip()


@pytest.fixture
def ledger(postgres: PostgresServer, proxy: Proxy, trip: Trip) -> Iterator[Ledger]:
    url = new_schema(postgres.url()).replace(str(postgres.port), str(proxy.port))
    opened = oncekey.open(url, faults=trip)
    yield opened
    opened.close(grace=0)


@pytest.mark.parametrize("then", DONE_BY)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("point", ["after-claim", "webhook-acted"])
async def test_what_is_in_doubt_is_done_once(
    ledger: Ledger, proxy: Proxy, trip: Trip, then: str, when: Any, point: str
) -> None:
    async with post_on(ledger, office()) as post:
        webhook = await post.webhook("stripe", then)
        assert (await webhook.deliver({"id": "warm"})).status == 200
        message = DONE_BY[then] if point == "after-claim" else GROUP
        trip.act = lambda: proxy.cut(message, when)
        trip.point = point
        first = await webhook.deliver(EVENT)
        assert proxy.was_cut.is_set()
        # A timer may have had the line that was cut; and an outcome that is on its way is stored
        # by the store itself, once it is back.
        assert first.status in ({200, 503} if point == "after-claim" else {200})
        assert (await webhook.insist(EVENT)).status == 200
        assert (await webhook.deliver(EVENT)).status == 200
        if then.startswith("resolve"):
            made = await post.app.engine.create_promise(TENANT, "noted", key="evt_1")
            assert made.promise.body == BODY
        else:
            done = [each.input for each in await post.started()]
            done += [each.data for each in await post.published()]
            assert done.count(BODY) == 1
