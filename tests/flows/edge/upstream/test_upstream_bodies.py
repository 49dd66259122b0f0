"""Bodies of requests that come in pieces: what is known when one does not come to its end."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from oncekey.core.errors import (
    InvalidInput,
    UpstreamTimeout,
    UpstreamUncertain,
    UpstreamUnreachable,
)
from oncekey.upstream import Upstream
from tests.fixtures.asking import CHUNKED, OK, send
from tests.fixtures.puppets import Heard, Line, puppet, reaching, says, until

pytestmark = pytest.mark.anyio

MEGABYTE = 1 << 20


class Pieces:
    """An asynchronous body that counts what was taken of it, and knows that it was closed."""

    def __init__(self, *pieces: bytes | Exception | asyncio.Event) -> None:
        self.pieces = pieces
        self.taken = 0
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            for piece in self.pieces:
                if isinstance(piece, asyncio.Event):
                    await piece.wait()
                elif isinstance(piece, Exception):
                    raise piece
                else:
                    self.taken += 1
                    yield piece
        finally:
            self.closed = True


@pytest.mark.parametrize("length", [None, 6])
@pytest.mark.parametrize("kind", ["async", "list", "generator"])
async def test_a_body_in_pieces_arrives_whole_and_leaves_the_connection_usable(
    kind: str, length: int | None
) -> None:
    pieces = [b"ab", b"", b"c", b"def"]
    async with puppet(says(OK)) as behind, reaching(behind.url) as upstream:
        for _ in range(3):
            body = {"async": Pieces(*pieces), "list": pieces, "generator": (p for p in pieces)}
            answer = await send(upstream, b"POST", b"/", [], body[kind], length=length)
            assert answer.status == 200
    assert len(behind.lines) == 1
    assert [seen.body for seen in behind.requests] == [b"abcdef"] * 3
    framing = (b"content-length", b"6") if length else (b"transfer-encoding", b"chunked")
    assert behind.requests[0].headers[1:] == [framing]


@pytest.mark.parametrize("length", [None, 0])
async def test_a_body_of_no_pieces_is_empty(length: int | None) -> None:
    async with puppet(says(OK)) as behind, reaching(behind.url) as upstream:
        assert (await send(upstream, b"POST", b"/", [], [], length=length)).status == 200
        assert upstream.load.idle == 1
    assert behind.requests[0].body == b""


async def test_a_body_that_fails_before_its_first_piece_leaves_no_doubt() -> None:
    async with puppet(says(OK)) as behind, reaching(behind.url) as upstream:
        broken = Pieces(b"", RuntimeError("the client left"))
        with pytest.raises(UpstreamUnreachable) as caught:
            await send(upstream, b"POST", b"/", [], broken)
        assert isinstance(caught.value.__cause__, RuntimeError)
        assert upstream.load == (0, 0, 0, 0)
    assert not behind.lines


async def heard_partly(line: Line) -> None:
    await line.head()
    await line.gone()


@pytest.mark.parametrize(
    "pieces, length",
    [
        ([b"abc", RuntimeError("the client left")], None),
        ([b"abc", RuntimeError("the client left")], 6),
        ([b"abc"], 4),
        ([b"abc", b"def"], 4),
    ],
)
async def test_a_body_that_does_not_come_to_its_end_leaves_doubt(
    pieces: list[bytes | Exception], length: int | None
) -> None:
    async with puppet(heard_partly) as behind, reaching(behind.url) as upstream:
        with pytest.raises(UpstreamUncertain) as caught:
            await send(upstream, b"POST", b"/", [], Pieces(*pieces), length=length)
        assert caught.value.__cause__ is not None
        assert upstream.load == (0, 0, 0, 0)
        await until(lambda: len(behind.lines) == 1)


async def test_a_body_longer_than_was_said_from_its_first_piece_is_not_sent() -> None:
    async with puppet(says(OK)) as behind, reaching(behind.url) as upstream:
        with pytest.raises(UpstreamUnreachable, match="more than the 2 bytes"):
            await send(upstream, b"POST", b"/", [], [b"abc"], length=2)
    assert not behind.lines


async def test_a_length_is_not_negative() -> None:
    async with puppet(says(OK)) as behind, reaching(behind.url) as upstream:
        with pytest.raises(InvalidInput):
            await send(upstream, b"POST", b"/", [], [b"abc"], length=-3)
    assert not behind.lines


async def test_no_connection_is_held_for_a_body_that_has_not_begun() -> None:
    gate = asyncio.Event()
    async with puppet(says(OK)) as behind, reaching(behind.url, max_connections=1) as upstream:
        slow = asyncio.create_task(send(upstream, b"POST", b"/", [], Pieces(gate, b"slow")))
        for _ in range(3):
            assert (await send(upstream, b"POST", b"/", [], b"fast")).status == 200
        gate.set()
        assert (await slow).status == 200
    assert [seen.body for seen in behind.requests] == [b"fast"] * 3 + [b"slow"]


async def test_a_body_that_never_begins_is_given_up_without_doubt() -> None:
    async with puppet(says(OK)) as behind, reaching(behind.url) as upstream:
        body = Pieces(asyncio.Event())
        with pytest.raises(UpstreamUnreachable, match="did not begin"):
            await send(upstream, b"POST", b"/", [], body, timeout=0.01)
        await until(lambda: body.closed)
    assert not behind.lines


async def test_a_body_that_stalls_is_given_up_with_doubt() -> None:
    async with puppet(heard_partly) as behind, reaching(behind.url) as upstream:
        body = Pieces(b"abc", asyncio.Event())
        with pytest.raises(UpstreamTimeout):
            await send(upstream, b"POST", b"/", [], body, timeout=0.05)
        await until(lambda: body.closed)


async def test_an_upstream_that_does_not_read_is_not_fed() -> None:
    gate = asyncio.Event()

    async def busy(line: Line) -> None:
        await gate.wait()
        await says(OK)(line)

    async with puppet(busy) as behind, reaching(behind.url) as upstream:
        body = Pieces(*[b"x" * MEGABYTE] * 64)
        asked = asyncio.create_task(send(upstream, b"POST", b"/", [], body, length=64 * MEGABYTE))
        await until(lambda: upstream.load.busy == 1 and _clogged(upstream))
        held = body.taken
        # Buffers of sockets hold a few; were nothing held back, all would be taken by now.
        assert held < 32
        gate.set()
        assert (await asked).status == 200
    assert len(behind.requests[0].body) == 64 * MEGABYTE


def _clogged(upstream: Upstream) -> bool:
    [connection] = upstream._live
    return connection._drained is not None and not connection._drained.done()


EARLY = b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno!"


@pytest.mark.parametrize("framing", ["chunks", "length", "bytes"])
async def test_an_answer_before_the_end_of_the_body_is_taken_and_no_more_is_sent(
    framing: str,
) -> None:
    gone = asyncio.Event()

    async def hasty(line: Line) -> None:
        await line.head()
        await line.say(EARLY)
        # It does not read on: what is not sent by now is not sent at all.
        await gone.wait()
        assert len(await line.rest()) < length

    length = 64 * MEGABYTE
    async with puppet(hasty, says(OK)) as behind, reaching(behind.url, idle=600) as upstream:
        body: Pieces | bytes = Pieces(*[b"x" * MEGABYTE] * 64, asyncio.Event())
        if framing == "bytes":
            body = b"x" * length
        answer = await send(
            upstream, b"POST", b"/", [], body, length=length if framing == "length" else None
        )
        assert (answer.status, answer.body) == (413, b"no!")
        await until(lambda: upstream.load == (0, 0, 0, 0))
        gone.set()
        if isinstance(body, Pieces):
            await until(lambda: isinstance(body, Pieces) and body.closed)
        assert (await send(upstream, b"POST", b"/", [], b"next")).status == 200
    assert [seen.body for seen in behind.requests] == [b"next"]


@pytest.mark.parametrize("framing", ["chunks", "bytes"])
async def test_an_early_answer_leaves_no_body_for_the_next_to_stumble_over(framing: str) -> None:
    """Its head was seen before and is not read again; the body that goes on is not overlooked."""

    async def play(line: Line) -> None:
        for _ in range(2):
            await line.head()
            await line.say(EARLY)
        await line.gone()

    body: Pieces | bytes = Pieces(b"abc", asyncio.Event())
    if framing == "bytes":
        body = b"x" * 64 * MEGABYTE
    async with puppet(play) as behind, reaching(behind.url, idle=600) as upstream:
        assert (await send(upstream, b"POST", b"/", [])).status == 413
        assert (await send(upstream, b"POST", b"/", [], body)).status == 413
        assert upstream.load == (0, 0, 0, 0)


async def test_an_early_answer_that_flows_is_told_to_its_end() -> None:
    async def hasty(line: Line) -> None:
        await line.head()
        await line.say(CHUNKED, b"2\r\nno\r\n", b"1\r\n!\r\n", b"0\r\n\r\n")
        await line.gone()

    async with puppet(hasty) as behind, reaching(behind.url) as upstream:
        body = Pieces(b"abc", asyncio.Event())
        answer = await send(upstream, b"POST", b"/", [], body)
        assert answer.body == b"no!"
        assert upstream.load == (0, 0, 0, 0)
        await until(lambda: body.closed)


async def test_an_interim_answer_does_not_end_the_body() -> None:
    gate = asyncio.Event()

    async def patient(line: Line) -> None:
        head = await line.head()
        assert head is not None
        await line.say(b"HTTP/1.1 100 Continue\r\n\r\n")
        gate.set()
        body = await line._body(head.lower())
        await line.say(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n" + body)
        await line.gone()

    async with puppet(patient) as behind, reaching(behind.url, idle=600) as upstream:
        answer = await send(upstream, b"POST", b"/", [], Pieces(b"abc", gate, b"def"))
        assert answer.body == b"abcdef"
        assert upstream.load.idle == 1


async def test_a_request_in_pieces_can_be_abandoned_at_any_time() -> None:
    async with puppet(heard_partly) as behind, reaching(behind.url) as upstream:
        for pieces in [[asyncio.Event()], [b"abc", asyncio.Event()]]:
            body, heard = Pieces(*pieces), Heard()
            asked = upstream.ask(b"POST", b"/", [], body, heard)
            await until(lambda body=body: body.taken == len(body.pieces) - 1)  # type: ignore[misc]
            asked.abandon()
            await until(lambda: upstream.load == (0, 0, 0, 0) and not upstream._pouring)
            assert not heard.told


async def test_closing_ends_requests_whose_bodies_have_not_begun() -> None:
    async with puppet(says(OK)) as behind, reaching(behind.url) as upstream:
        heard = Heard()
        upstream.ask(b"POST", b"/", [], Pieces(asyncio.Event()), heard)
        await asyncio.sleep(0)
        await upstream.close(grace=0.01)
        assert isinstance((await heard.end()).error, UpstreamUnreachable)
    assert not behind.lines
