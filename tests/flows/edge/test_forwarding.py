"""A delivery on its way to a service behind: what its route says of one that breaks off."""

import asyncio

import pytest

from oncekey import CannotTell
from oncekey.core.errors import ConfigurationError, UpstreamUncertain, UpstreamUnreachable
from oncekey.core.model import Takeover
from oncekey.edge.forwarding import Forwarding
from oncekey.edge.policy import EdgeRoute, Table, Uncertain
from oncekey.upstream import Upstream
from oncekey.webhooks.acting import Broken, ForwardRequest
from oncekey.wire.rule import Rule
from tests.fixtures.puppets import Line, puppet, reaching, until

pytestmark = pytest.mark.anyio

REQUEST = ForwardRequest("/hooks", (), b"{}", "acme", "shop", "service:webhook-ingest", "k")


def forwarding(
    upstream: Upstream | None, uncertain: Uncertain = "refuse", takeover: Takeover = "rerun"
) -> Forwarding:
    recover = (lambda _: CannotTell()) if takeover == "recover" else None
    methods = frozenset({"POST"})
    rule = Rule(key="ignored", methods=methods, takeover=takeover, recover=recover)
    route = EdgeRoute("/hooks", "REQUIRED_B", rule, upstream, uncertain=uncertain)
    return Forwarding(Table([route]))


async def hangs_up(line: Line) -> None:
    await line.request()


@pytest.mark.parametrize("uncertain", ["refuse", "recover"])
async def test_one_that_broke_off_is_not_sent_again(uncertain: Uncertain) -> None:
    """A function to recover with is asked about requests of clients."""
    async with puppet(hangs_up) as server, reaching(server.url) as upstream:
        with pytest.raises(UpstreamUncertain):
            await forwarding(upstream, uncertain)(REQUEST)


async def test_one_that_broke_off_is_sent_again_where_the_route_says_so() -> None:
    async with puppet(hangs_up) as server, reaching(server.url) as upstream:
        broken = await forwarding(upstream, "rerun")(REQUEST)
        assert isinstance(broken, Broken)
        assert broken.again


async def test_one_that_is_waited_for_no_longer_is_in_doubt() -> None:
    """A server that stops cancels what it has no time for; the delivery ends as if it broke off."""

    async def waits(line: Line) -> None:
        await line.request()
        await line.gone()

    async with puppet(waits) as server, reaching(server.url) as upstream:
        task = asyncio.create_task(forwarding(upstream)(REQUEST))
        await until(lambda: bool(server.requests))
        task.cancel()
        with pytest.raises(UpstreamUncertain):
            await task
        assert upstream.load.busy == 0


async def test_one_that_was_not_sent_when_it_is_waited_for_no_longer_leaves_no_doubt() -> None:
    async def waits(line: Line) -> None:
        await line.request()
        await line.gone()

    async with puppet(waits) as server, reaching(server.url, max_connections=1) as upstream:
        forward = forwarding(upstream)
        first, second = (asyncio.create_task(forward(REQUEST)) for _ in range(2))
        await until(lambda: bool(server.requests))
        second.cancel()
        with pytest.raises(UpstreamUnreachable):
            await second
        first.cancel()
        with pytest.raises(UpstreamUncertain):
            await first
        assert len(server.requests) == 1


@pytest.mark.parametrize("takeover", ["rerun", "refuse", "recover"])
async def test_what_a_route_says_of_a_process_that_died_holds(takeover: Takeover) -> None:
    async with reaching("http://127.0.0.1:9") as upstream:
        assert forwarding(upstream, takeover=takeover).takeover("/hooks") == takeover


async def test_without_a_route_nothing_is_sent() -> None:
    nowhere = forwarding(None, takeover="refuse")
    assert nowhere.takeover("/hooks") == "rerun"
    with pytest.raises(ConfigurationError, match="no route with an upstream takes POST /hooks"):
        await nowhere(REQUEST)
