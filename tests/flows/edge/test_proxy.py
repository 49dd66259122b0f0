"""What the proxy remembers of requests is theirs alone, and only while the store has it."""

from collections.abc import AsyncIterator

import pytest

import oncekey
from oncekey import Ledger, Ref, Scope
from oncekey.core.errors import StoreUnavailable
from oncekey.edge.asked import Answer, Asked
from oncekey.edge.identity.identities import Identities, Known
from oncekey.edge.policy import EdgeRoute, Table
from oncekey.edge.proxy import Admitted, Proxy
from oncekey.edge.serving.repeats import learned
from oncekey.upstream import Upstream
from oncekey.wire.identity import Identity
from oncekey.wire.rule import Rule
from tests.fixtures.frozen import FrozenClock
from tests.fixtures.puppets import Line, puppet, reaching, says

pytestmark = pytest.mark.anyio

ALICE = Known(Identity("user:alice", "acme", "shop"), "t-acme:shop:user:alice")
MOVED = Known(Identity("user:alice", "umbrella", "shop"), "t-umbrella:shop:user:alice")
HEADERS = [(b"host", b"edge"), (b"idempotency-key", b"k")]
ASKED = Asked("POST", "/orders/1", b"/orders/1", b"", HEADERS, "127.0.0.1", "http")
OF_ALICE = Ref(Scope(ALICE.namespace, "POST /orders/{id}"), "k")
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
    route = EdgeRoute("/orders/{id}", "REQUIRED_A", rule, upstream)
    return Proxy(Table([route]), Identities(), ledger)


async def answered(
    proxy: Proxy, known: Known = ALICE, asked: Asked = ASKED, body: bytes = b""
) -> Answer:
    route = proxy.table.find("POST", asked.path)
    assert route is not None
    admitted = proxy.admit_known(asked, route, known)
    assert isinstance(admitted, Admitted)
    return await proxy.forward(asked, admitted, body)


def is_replayed(answer: Answer) -> bool:
    return (b"idempotent-replayed", b"true") in answer.headers


async def test_an_answer_is_replayed_no_longer_than_it_is_kept(
    ledger: Ledger, clock: FrozenClock
) -> None:
    """The third time it is at hand; that does not make it last."""
    async with puppet(CREATED) as server, reaching(server.url) as upstream:
        proxy = proxy_to(upstream, ledger)
        for runs in (1, 2, 3):
            replayed = [is_replayed(await answered(proxy)) for _ in range(4)]
            assert replayed == [False, True, True, True]
            assert len(server.requests) == runs
            if runs == 1:
                await ledger.apurge(OF_ALICE)
            else:
                clock.advance(365 * 86_400_000)


async def test_a_credential_that_comes_to_be_somebody_elses_is_told_so(ledger: Ledger) -> None:
    """An API key that was moved to another tenant, on a connection that goes on."""
    data = b"POST /orders/1 HTTP/1.1\r\nhost: edge\r\nidempotency-key: k\r\n\r\n"
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


@pytest.mark.parametrize(
    "other, body",
    [
        (ASKED, b'{"a": 2}'),
        (ASKED._replace(query=b"a=1"), b'{"a": 1}'),
        (ASKED._replace(path="/orders/2", raw_path=b"/orders/2"), b'{"a": 1}'),
        (ASKED._replace(headers=[*HEADERS, (b"content-type", b"text/plain")]), b'{"a": 1}'),
    ],
    ids=["body", "query", "path", "content-type"],
)
async def test_an_answer_at_hand_is_not_that_to_another_request_with_its_key(
    ledger: Ledger, other: Asked, body: bytes
) -> None:
    asked = ASKED._replace(headers=[*HEADERS, (b"content-type", b"application/json")])
    if b"content-type" not in dict(other.headers):
        other = other._replace(headers=asked.headers)
    async with puppet(CREATED) as server, reaching(server.url) as upstream:
        proxy = proxy_to(upstream, ledger)
        for _ in range(3):
            assert (await answered(proxy, asked=asked, body=b'{"a": 1}')).status == 201
        for _ in range(2):
            assert (await answered(proxy, asked=other, body=body)).status == 422
        assert len(server.requests) == 1


async def test_whoever_lost_the_claim_answers_what_the_winner_came_to(ledger: Ledger) -> None:
    """An operator frees the key while it is asked about, and a retry is the quicker one."""

    async def play(line: Line) -> None:
        while await line.request():
            said = b"won" if len(server.requests) == 2 else b"lost"
            if said == b"lost":
                await ledger.apurge(OF_ALICE)
                assert (await answered(proxy)).body == b"won"
            await line.say(b"HTTP/1.1 201 Created\r\ncontent-length: %d\r\n\r\n" % len(said), said)

    async with puppet(play) as server, reaching(server.url) as upstream:
        proxy = proxy_to(upstream, ledger)
        answer = await answered(proxy)
        assert (answer.body, is_replayed(answer)) == (b"won", True)


async def test_whoever_lost_the_claim_to_another_request_is_not_shown_its_answer(
    ledger: Ledger,
) -> None:
    async def play(line: Line) -> None:
        while await line.request():
            if len(server.requests) == 1:
                await ledger.apurge(OF_ALICE)
                assert (await answered(proxy, body=b"second")).status == 201
            await line.say(b"HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\n", b"ok")

    async with puppet(play) as server, reaching(server.url) as upstream:
        proxy = proxy_to(upstream, ledger)
        answer = await answered(proxy, body=b"first")
        assert answer.status == 409
        assert b"claim-lost" in answer.body


async def test_an_answer_that_could_not_be_kept_does_not_go_out(clock: FrozenClock) -> None:
    """A retry could run again, so that the client must hear of it."""

    def away(point: str) -> None:
        if point == "before-settle":
            raise StoreUnavailable

    ledger = oncekey.open("memory://", clock=clock, faults=away)
    async with puppet(CREATED) as server, reaching(server.url) as upstream:
        answer = await answered(proxy_to(upstream, ledger))
        assert answer.status >= 500
        assert answer.body != b"ok"
        assert len(server.requests) == 1
    await ledger.aclose(grace=0)
