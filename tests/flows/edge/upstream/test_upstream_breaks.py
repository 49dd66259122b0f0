"""Answers that lie, break off or do not come: what is known, and that nothing is asked twice."""

import asyncio
import time

import pytest

from oncekey.core.errors import (
    UpstreamTimeout,
    UpstreamUncertain,
)
from tests.fixtures.asking import CHUNKED, OK, certain, post, send
from tests.fixtures.puppets import Heard, Line, Play, puppet, reaching, says, until

pytestmark = pytest.mark.anyio


# Answers that cannot be trusted.

LIES = {
    "length and chunks": CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Length: 2\r\n\r\nok"),
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
    "not a length": b"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\nok",
    "unknown coding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "not a chunk": CHUNKED + b"x\r\nok\r\n0\r\n\r\n",
    "chunk too long": CHUNKED + b"1\r\nok\r\n0\r\n\r\n",
    "after the last chunk": CHUNKED + b"2\r\nok\r\n0\r\n\r\nmore",
    "a chunk without CR": CHUNKED + b"2\nok\n0\n\n",
    "not HTTP": b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
    "HTTP/2": b"HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "no status": b"HTTP/1.1 OK\r\nContent-Length: 2\r\n\r\nok",
    "an upgrade": b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
    "NUL in a header": b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 2\r\n\r\nok",
    "CR in a header": b"HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 2\r\n\r\nok",
    "LF in a header": b"HTTP/1.1 200 OK\r\nX: a\nb\r\nContent-Length: 2\r\n\r\nok",
    "a folded header": b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\nok",
    "a header without a name": b"HTTP/1.1 200 OK\r\n: b\r\nContent-Length: 2\r\n\r\nok",
    "a large head": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 5000 + b"\r\nContent-Length: 2\r\n\r\nok",
    "an endless head": b"HTTP/1.1 200 OK\r\n" + b"X: x\r\n" * 2000,
    "endless interim answers": b"HTTP/1.1 100 Continue\r\n\r\n" * 500,
    "more than it says": OK + b"!",
    "a second answer": OK + OK,
    "a body with a 204": b"HTTP/1.1 204 None\r\nContent-Length: 2\r\n\r\nok",
}


# What comes before the lie is an answer, when it comes alone.
HALF_TRUE = {"after the last chunk", "more than it says", "a second answer", "a body with a 204"}


@pytest.mark.parametrize("name", LIES)
@pytest.mark.parametrize("dribble", [False, True])
async def test_an_answer_that_breaks_the_rules_is_no_answer_and_ends_the_connection(
    name: str, dribble: bool
) -> None:
    lie = LIES[name]
    closed = asyncio.Event()

    async def liar(line: Line) -> None:
        await line.request()
        writing = asyncio.create_task(
            line.say(*([lie[:-9], *_bytes(lie[-9:])] if dribble else [lie]))
        )
        await line.gone()
        await asyncio.gather(writing, return_exceptions=True)
        closed.set()

    async with (
        puppet(liar, says(OK)) as behind,
        reaching(behind.url, max_head=4096, idle=600) as upstream,
    ):
        heard = Heard()
        upstream.ask(b"POST", b"/", [], b"{}", heard)
        await heard.end()
        await closed.wait()
        if not (dribble and name in HALF_TRUE and heard.error is None):
            assert not certain(heard.error)
        assert (await post(upstream)).body == b"ok"
    assert [len(line.requests) for line in behind.lines] == [1, 1]


def _bytes(data: bytes) -> list[bytes]:
    return [bytes([byte]) for byte in data]


ENDS = {
    "nothing": b"",
    "half a status line": b"HTTP/1.",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "an interim answer": b"HTTP/1.1 100 Continue\r\n\r\n",
    "half a body": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok",
    "half a large body": b"HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\nok",
    "half a chunk": CHUNKED + b"5\r\nok",
    "no last chunk": CHUNKED + b"2\r\nok\r\n",
    "half a last chunk": CHUNKED + b"2\r\nok\r\n0\r\n",
}


@pytest.mark.parametrize("said", ENDS.values(), ids=ENDS.keys())
@pytest.mark.parametrize("how", ["close", "half", "reset"])
async def test_an_answer_that_breaks_off_leaves_doubt_and_nothing_is_asked_again(
    said: bytes, how: str
) -> None:
    async def breaker(line: Line) -> None:
        await line.request()
        await line.say(said)
        if how == "reset":
            line.reset()
        elif how == "half":
            line.writer.write_eof()
            await line.gone()

    async with puppet(breaker) as behind, reaching(behind.url) as upstream:
        with pytest.raises(UpstreamUncertain) as caught:
            await post(upstream)
        assert not isinstance(caught.value, UpstreamTimeout)
        assert upstream.load == (0, 0, 0, 0)
    assert len(behind.requests) == 1


async def test_a_failure_may_come_after_the_beginning() -> None:
    async def breaker(line: Line) -> None:
        await line.request()
        await line.say(CHUNKED + b"2\r\nok\r\n")

    async with puppet(breaker) as behind, reaching(behind.url) as upstream:
        heard = Heard()
        upstream.ask(b"GET", b"/", [], b"", heard)
        await heard.end()
    assert heard.told[0] == "began"
    assert heard.told[-1] == "failed"
    assert heard.body == b"ok"
    assert not certain(heard.error)


async def test_an_answer_is_taken_though_the_upstream_resets_after_it() -> None:
    async def hasty(line: Line) -> None:
        await line.request()
        await line.say(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
        await line.gone()
        line.reset()

    async with puppet(hasty) as behind, reaching(behind.url) as upstream:
        for _ in range(3):
            assert (await post(upstream)).body == b"ok"


async def test_a_reset_of_an_idle_connection_is_nobodys_failure() -> None:
    async def resetting(line: Line) -> None:
        await line.request()
        await line.say(OK)
        line.reset()

    async with puppet(resetting) as behind, reaching(behind.url, idle=600) as upstream:
        for _ in range(3):
            await asyncio.gather(post(upstream), return_exceptions=True)
            await until(lambda: upstream.load.idle == 0)
    assert [len(line.requests) for line in behind.lines] == [1, 1, 1]


# Time.


async def silent(line: Line) -> None:
    await line.request()
    await line.gone()


async def half_a_head(line: Line) -> None:
    await line.request()
    await line.say(b"HTTP/1.1 200 OK\r\n")
    await line.gone()


async def half_a_body(line: Line) -> None:
    await line.request()
    await line.say(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok")
    await line.gone()


async def half_a_stream(line: Line) -> None:
    await line.request()
    await line.say(CHUNKED + b"2\r\nok\r\n")
    await line.gone()


async def for_ever_interim(line: Line) -> None:
    await line.request()
    leaving = asyncio.create_task(line.gone())
    while not leaving.done():
        await line.say(b"HTTP/1.1 102 Processing\r\n\r\n")
        await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    "play", [silent, half_a_head, half_a_body, half_a_stream, for_ever_interim]
)
async def test_an_upstream_that_is_too_slow_is_left_and_the_connection_closed(play: Play) -> None:
    closed = asyncio.Event()

    async def slow(line: Line) -> None:
        await play(line)
        closed.set()

    async with puppet(slow) as behind, reaching(behind.url, timeout=0.2) as upstream:
        with pytest.raises(UpstreamTimeout, match=r"within 0\.2 s"):
            await post(upstream)
        assert upstream.load == (0, 0, 0, 0)
        await closed.wait()
    assert len(behind.requests) == 1


async def test_an_answer_that_flows_may_take_longer_than_the_timeout() -> None:
    async def steady(line: Line) -> None:
        await line.request()
        await line.say(CHUNKED)
        for _ in range(10):
            await line.say(b"1\r\nx\r\n")
            await asyncio.sleep(0.05)
        await line.say(b"0\r\n\r\n")

    async with puppet(steady) as behind, reaching(behind.url, timeout=0.3) as upstream:
        assert (await post(upstream)).body == b"x" * 10


async def test_one_ask_may_have_less_time_than_the_others() -> None:
    async with puppet(silent) as behind, reaching(behind.url) as upstream:
        with pytest.raises(UpstreamTimeout):
            await send(upstream, b"POST", b"/", [], b"", timeout=0.05)


async def test_nobody_is_late_because_the_loop_was_held_up() -> None:
    async def holding(line: Line) -> None:
        while await line.request():
            line.writer.write(OK)
            time.sleep(0.5)  # noqa: ASYNC251 - this is what holds it up

    async with puppet(holding) as behind, reaching(behind.url, timeout=0.2) as upstream:
        for _ in range(3):
            assert (await post(upstream)).body == b"ok"
