"""What the proxy remembers of requests is theirs alone, and only while the store has it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

import oncekey
from oncekey import Ledger, Ref, Scope
from oncekey.edge.asked import Asked
from oncekey.edge.identity.identities import Identities, Known
from oncekey.edge.policy import EdgeRoute, Table
from oncekey.edge.proxy import Admitted, Proxy
from oncekey.edge.serving.repeats import learned
from oncekey.edge.upstream import Upstream
from oncekey.wire.identity import Identity
from oncekey.wire.rule import Rule
from tests.fixtures.frozen import FrozenClock
from tests.fixtures.puppets import puppet, reaching, says

pytestmark = pytest.mark.anyio

ALICE = Known(Identity("user:alice", "acme", "shop"), "t-acme:shop:user:alice")
MOVED = Known(Identity("user:alice", "umbrella", "shop"), "t-umbrella:shop:user:alice")
HEADERS = [(b"host", b"edge"), (b"idempotency-key", b"k")]
ASKED = Asked("POST", "/orders", b"/orders", b"", HEADERS, "127.0.0.1", "http")
CREATED = says(b"HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\nok")


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
async def ledger(clock: FrozenClock) -> AsyncIterator[Ledger]:
    opened = oncekey.open("memory://", clock=clock)
    yield opened
    await opened.aclose(grace=0)


def proxy_to(upstream: Upstream, ledger: Ledger) -> Proxy:
    rule = Rule(key="required", methods=frozenset({"POST"}), retention="interactive")
    route = EdgeRoute("/orders", "REQUIRED_A", rule, upstream)
    return Proxy(Table([route]), Identities(), ledger)


async def answered(proxy: Proxy, known: Known = ALICE, asked: Asked = ASKED) -> dict[Any, bytes]:
    """The lines of the answer."""
    route = proxy.table.find("POST", "/orders")
    assert route is not None
    admitted = proxy.admit_known(asked, route, known)
    assert isinstance(admitted, Admitted)
    return dict((await proxy.forward(asked, admitted, b"")).headers)


async def test_an_answer_is_replayed_no_longer_than_it_is_kept(
    ledger: Ledger, clock: FrozenClock
) -> None:
    """The third time it is at hand; that does not make it last."""
    async with puppet(CREATED) as server, reaching(server.url) as upstream:
        proxy = proxy_to(upstream, ledger)
        for runs in (1, 2, 3):
            lines = [await answered(proxy) for _ in range(4)]
            assert [b"idempotent-replayed" in each for each in lines] == [False, True, True, True]
            assert len(server.requests) == runs
            if runs == 1:
                await ledger.apurge(Ref(Scope(ALICE.namespace, "POST /orders"), "k"))
            else:
                clock.advance(365 * 86_400_000)


async def test_a_credential_that_comes_to_be_somebody_elses_is_told_so(ledger: Ledger) -> None:
    """An API key that was moved to another tenant, on a connection that goes on."""
    data = b"POST /orders HTTP/1.1\r\nhost: edge\r\nidempotency-key: k\r\n\r\n"
    repeat = learned(data, ASKED, b"", b"digest")
    assert repeat is not None
    asked = repeat.asked([b"k"])
    async with puppet(CREATED) as server, reaching(server.url) as upstream:
        proxy = proxy_to(upstream, ledger)
        for known in (ALICE, MOVED):
            await answered(proxy, known, asked)
        told = [dict(each.headers) for each in server.requests]
        assert [each[b"x-tenant-id"] for each in told] == [b"acme", b"umbrella"]
        assert [each[b"idempotency-key"] for each in told] == [
            b"t-acme:shop:user:alice:k",
            b"t-umbrella:shop:user:alice:k",
        ]
