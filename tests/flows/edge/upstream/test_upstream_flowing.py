"""Answers that come in pieces: nobody holds more of one than is needed."""

import asyncio
from collections.abc import Iterator

import pytest

from oncekey.core.errors import (
    UpstreamUncertain,
)
from oncekey.core.model import Headers
from oncekey.upstream import Ask
from oncekey.upstream.rest import Rest
from tests.fixtures.asking import CHUNKED, send
from tests.fixtures.puppets import PATIENCE, Heard, Line, puppet, reaching, says, until

pytestmark = pytest.mark.anyio

MEGABYTE = 1 << 20


def flowing(size: int) -> Iterator[bytes]:
    """An answer of `size` bytes in pieces."""
    yield CHUNKED
    for _ in range(size // MEGABYTE):
        yield b"%x\r\n%b\r\n" % (MEGABYTE, b"y" * MEGABYTE)
    yield b"0\r\n\r\n"


class Pausing(Heard):
    """A listener that pauses as soon as it hears something."""

    ask: Ask

    def began(self, status: int, headers: Headers) -> None:
        super().began(status, headers)
        self.ask.pause()


async def test_an_answer_is_read_no_faster_than_it_is_wanted() -> None:
    said = 0

    async def play(line: Line) -> None:
        nonlocal said
        await line.request()
        for piece in flowing(64 * MEGABYTE):
            await line.say(piece)
            said += len(piece)
        await line.gone()

    async with puppet(play) as behind, reaching(behind.url, timeout=0.3, idle=600) as upstream:
        heard = Pausing()
        heard.ask = upstream.ask(b"GET", b"/", [], b"", heard)
        await heard.beginning()
        # Longer than the timeout: while it is paused, nobody is late.
        await asyncio.sleep(0.6)
        assert said < 32 * MEGABYTE
        assert len(heard.body) < MEGABYTE
        heard.ask.resume()
        await heard.end()
        assert heard.told[-1] == "ended"
        assert heard.body == b"y" * 64 * MEGABYTE
        assert upstream.load.idle == 1
        heard.ask.pause()
        heard.ask.resume()
        heard.ask.abandon()
        assert upstream.load.idle == 1


@pytest.mark.parametrize("size", [5, 100, 4096])
async def test_an_answer_within_the_bound_is_whole(size: int) -> None:
    body = b"y" * size
    for raw in [
        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (size, body),
        CHUNKED + b"%x\r\n%b\r\n0\r\n\r\n" % (size, body),
    ]:
        async with puppet(says(raw)) as behind, reaching(behind.url) as upstream:
            answer = await send(upstream, b"GET", b"/", [], most=4096)
            assert answer == (200, answer.headers, body, None)


@pytest.mark.parametrize("most", [0, 100])
async def test_an_answer_beyond_the_bound_flows(most: int) -> None:
    body = b"z" * (3 * MEGABYTE)
    raw = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    async with puppet(says(raw)) as behind, reaching(behind.url, idle=600) as upstream:
        for _ in range(2):
            answer = await send(upstream, b"GET", b"/", [], most=most)
            assert answer.rest is not None
            assert answer.body + b"".join([piece async for piece in answer.rest]) == body
            assert upstream.load.idle == 1
    assert len(behind.lines) == 1


async def test_a_rest_that_nobody_reads_is_held_back_until_it_is_read() -> None:
    async def play(line: Line) -> None:
        await line.request()
        await line.say(*flowing(32 * MEGABYTE))
        await line.gone()

    async with puppet(play) as behind, reaching(behind.url, timeout=0.3) as upstream:
        answer = await send(upstream, b"GET", b"/", [], most=0)
        assert answer.rest is not None
        assert isinstance(answer.rest, Rest)
        await until(lambda: isinstance(answer.rest, Rest) and answer.rest._paused)
        assert answer.rest._ahead < 2 * MEGABYTE
        await asyncio.sleep(0.6)
        size = 0
        async for piece in answer.rest:
            size += len(piece)
        assert len(answer.body) + size == 32 * MEGABYTE


async def test_a_rest_that_is_closed_ends_its_connection() -> None:
    left = asyncio.Event()

    async def play(line: Line) -> None:
        await line.request()
        await line.say(CHUNKED + b"14\r\n" + b"x" * 20 + b"\r\n")
        await line.gone()
        left.set()

    async with puppet(play) as behind, reaching(behind.url) as upstream:
        answer = await send(upstream, b"GET", b"/", [], most=0)
        assert answer.rest is not None
        assert await anext(answer.rest) == b"x" * 20
        await answer.rest.aclose()
        assert [piece async for piece in answer.rest] == []
        async with asyncio.timeout(PATIENCE):
            await left.wait()
        assert upstream.load == (0, 0, 0, 0)


async def test_a_rest_that_breaks_off_says_so_after_what_had_come() -> None:
    async def play(line: Line) -> None:
        await line.request()
        await line.say(CHUNKED + b"14\r\n" + b"x" * 20 + b"\r\n")

    async with puppet(play) as behind, reaching(behind.url) as upstream:
        answer = await send(upstream, b"GET", b"/", [], most=0)
        assert answer.rest is not None
        await until(lambda: upstream.load == (0, 0, 0, 0))
        assert await anext(answer.rest) == b"x" * 20
        for _ in range(2):
            with pytest.raises(UpstreamUncertain):
                await anext(answer.rest)
