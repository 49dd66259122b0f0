"""Answers that nobody reads to their end: no connection is held for them, and no key stays in
flight because of one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import oncekey
from oncekey import Kind, Ledger, Ref, Scope
from oncekey.core.errors import UpstreamUncertain
from oncekey.edge.asked import Answer, Asked
from oncekey.edge.decide import Protect
from oncekey.edge.forwarding import Forwarding
from oncekey.edge.identity.identities import Identities, Known
from oncekey.edge.policy import EdgeRoute, Table
from oncekey.edge.proxy import Admitted, Proxy
from oncekey.edge.sending import Listening, as_it_comes
from oncekey.upstream import Upstream
from oncekey.webhooks.acting import Answered, ForwardRequest
from oncekey.wire.headers import lines_of
from oncekey.wire.identity import Identity
from oncekey.wire.rule import Rule
from tests.fixtures.puppets import Line, Play, puppet, reaching, until

pytestmark = pytest.mark.anyio

NAMESPACE = "t-acme:shop:user:alice"
ALICE = Known(Identity("user:alice", "acme", "shop"), NAMESPACE)
EVENTS = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


DELIVERY = ForwardRequest("/events", (), b"{}", "acme", "shop", "service:webhook-ingest", "k")


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def endless(head: bytes = EVENTS, piece: bytes = b"x" * 1024) -> Play:
    async def play(line: Line) -> None:
        await line.request()
        await line.say(head)
        while True:
            await line.say(chunk(piece))
            await asyncio.sleep(0)

    return play


def route_to(upstream: Upstream, **options: Any) -> EdgeRoute:
    rule = Rule(key="required", methods=frozenset({"POST"}), **options)
    return EdgeRoute("/events", "REQUIRED_A", rule, upstream)


@pytest.fixture
async def ledger() -> AsyncIterator[Ledger]:
    opened = oncekey.open("memory://")
    yield opened
    await opened.aclose(grace=0)


async def first_of(ledger: Ledger, route: EdgeRoute) -> Answer:
    """The answer to the first request with the key `k`."""
    headers = [(b"host", b"edge"), (b"idempotency-key", b"k")]
    asked = Asked("POST", "/events", b"/events", b"", headers, "127.0.0.1", "http")
    verdict = Protect(NAMESPACE, "k", f"{NAMESPACE}:k")
    admitted = Admitted(route, verdict, ALICE, lines_of(headers))
    proxy = Proxy(Table([route]), Identities(), ledger)
    return await proxy.protect(asked, admitted, verdict, b"{}")


async def kept(ledger: Ledger) -> Any:
    record = await ledger.aattach(Ref(Scope(NAMESPACE, "POST /events"), "k"), 30)
    assert record is not None
    return record.outcome


@asynccontextmanager
async def listening(*plays: Play) -> AsyncIterator[tuple[Upstream, Answer]]:
    async with puppet(*plays) as server, reaching(server.url) as upstream:
        heard = Listening(as_it_comes)
        heard.ask = upstream.ask(b"GET", b"/", (), b"", heard)
        yield upstream, await heard.answer()


async def test_a_rest_that_is_closed_unread_ends_its_connection() -> None:
    async with listening(endless(piece=b"x" * 65536)) as (upstream, answer):
        assert answer.rest is not None
        await answer.rest.aclose()
        await until(lambda: upstream.load.busy == 0)


async def test_a_rest_that_is_closed_in_the_middle_ends_its_connection() -> None:
    async with listening(endless()) as (upstream, answer):
        assert answer.rest is not None
        assert await anext(answer.rest)
        await answer.rest.aclose()
        await until(lambda: upstream.load.busy == 0)


def says_at_once(head: bytes, body: bytes) -> Play:
    async def play(line: Line) -> None:
        await line.request()
        await line.say(head + body)
        await line.gone()

    return play


LARGE = b"x" * 5000
WHOLE = {
    "with its length": says_at_once(b"HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n", LARGE),
    "in a chunk": says_at_once(
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", chunk(LARGE) + b"0\r\n\r\n"
    ),
    "as events": says_at_once(EVENTS, chunk(b"data: 1\n\n") + b"0\r\n\r\n"),
}


@pytest.mark.parametrize("name", WHOLE)
async def test_what_is_not_to_be_kept_is_not_though_it_comes_whole(
    ledger: Ledger, name: str
) -> None:
    async with puppet(WHOLE[name]) as server, reaching(server.url) as upstream:
        answer = await first_of(ledger, route_to(upstream, max_stored_body=4096))
        assert (b"idempotency-stored", b"false") in answer.headers
        assert answer.body or answer.rest is not None
        assert (await kept(ledger)).kind is Kind.UNKEPT


@pytest.mark.parametrize("name", WHOLE)
async def test_nor_is_it_of_a_delivery(name: str) -> None:
    async with puppet(WHOLE[name]) as server, reaching(server.url) as upstream:
        forward = Forwarding(Table([route_to(upstream, max_stored_body=4096)]))
        answered = await forward(DELIVERY)
        assert isinstance(answered, Answered)
        assert answered.outcome.kind is Kind.UNKEPT


async def test_an_answer_to_a_delivery_that_is_too_large_ends_its_connection() -> None:
    async with puppet(endless(piece=b"x" * 65536)) as server, reaching(server.url) as upstream:
        forward = Forwarding(Table([route_to(upstream)]))
        answered = await forward(DELIVERY)
        assert isinstance(answered, Answered)
        assert answered.outcome.kind is Kind.UNKEPT
        await until(lambda: upstream.load.busy == 0)


async def test_events_whose_client_left_at_once_are_kept(ledger: Ledger) -> None:
    go = asyncio.Event()

    async def play(line: Line) -> None:
        await line.request()
        await line.say(EVENTS)
        await go.wait()
        await line.say(chunk(b"data: 1\n\n") + b"0\r\n\r\n")
        await line.gone()

    async with puppet(play) as server, reaching(server.url) as upstream:
        answer = await first_of(ledger, route_to(upstream, store_events=True))
        assert answer.rest is not None
        # It left before any of it was read.
        await answer.rest.aclose()
        go.set()
        outcome = await kept(ledger)
        assert (outcome.kind, outcome.body) == (Kind.RESPONSE, b"data: 1\n\n")


async def test_events_without_end_are_left_when_they_are_too_many_to_keep(ledger: Ledger) -> None:
    async with puppet(endless()) as server, reaching(server.url) as upstream:
        answer = await first_of(ledger, route_to(upstream, store_events=True, max_stored_body=4096))
        assert answer.rest is not None
        assert await anext(answer.rest)
        await answer.rest.aclose()
        assert (await kept(ledger)).kind is Kind.UNKEPT
        await until(lambda: upstream.load.busy == 0)


async def test_events_that_are_too_many_to_keep_go_on_to_whoever_reads_them(ledger: Ledger) -> None:
    async with puppet(endless()) as server, reaching(server.url) as upstream:
        answer = await first_of(ledger, route_to(upstream, store_events=True, max_stored_body=4096))
        assert answer.rest is not None
        read = 0
        async for each in answer.rest:
            read += len(each)
            if read > 64 << 10:
                break
        # Others learn of it while they flow.
        assert (await kept(ledger)).kind is Kind.UNKEPT
        await answer.rest.aclose()


async def test_events_that_break_off_are_in_doubt_for_whoever_asks_again(ledger: Ledger) -> None:
    async def play(line: Line) -> None:
        await line.request()
        await line.say(EVENTS + chunk(b"data: 1\n\n"))

    async with puppet(play) as server, reaching(server.url) as upstream:
        answer = await first_of(ledger, route_to(upstream, store_events=True))
        assert answer.rest is not None
        with pytest.raises(UpstreamUncertain):
            async for _ in answer.rest:
                pass
        outcome = await kept(ledger)
        assert (outcome.kind, outcome.status) == (Kind.RESPONSE, 409)
        assert b"/outcome-unknown" in outcome.body


async def test_events_of_a_server_error_are_nobodys_answer(ledger: Ledger) -> None:
    go = asyncio.Semaphore(0)

    async def play(line: Line) -> None:
        while await line.request():
            await line.say(EVENTS.replace(b"200 OK", b"503 Busy"))
            await go.acquire()
            await line.say(chunk(b"data: 1\n\n") + b"0\r\n\r\n")

    async with puppet(play) as server, reaching(server.url) as upstream:
        for _ in range(2):
            answer = await first_of(ledger, route_to(upstream, store_events=True))
            go.release()
            assert answer.rest is not None
            assert [each async for each in answer.rest] == [b"data: 1\n\n"]
        assert len(server.requests) == 2
