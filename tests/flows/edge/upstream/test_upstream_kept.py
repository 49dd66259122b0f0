"""Connections that are kept, those that are not, and how many there may be of anything."""

import asyncio
import socket
from collections.abc import Iterator

import pytest

from oncekey.core.errors import UpstreamUnreachable
from tests.fixtures.asking import OK, post, send
from tests.fixtures.puppets import Line, puppet, reaching, says, until

pytestmark = pytest.mark.anyio


# Keeping connections.


async def test_connections_are_kept_and_the_last_one_used_is_used_next() -> None:
    async with puppet(says(OK)) as behind, reaching(behind.url) as upstream:
        await asyncio.gather(*[post(upstream) for _ in range(4)])
        assert upstream.load == (0, 4, 0, 0)
        before = [len(line.requests) for line in behind.lines]
        for _ in range(10):
            await post(upstream)
        used = [len(line.requests) for line in behind.lines]
    assert sorted(after - once for after, once in zip(used, before, strict=True)) == [0, 0, 0, 10]


async def test_a_connection_that_rests_too_long_is_closed() -> None:
    closed = asyncio.Event()

    async def play(line: Line) -> None:
        await line.request()
        await line.say(OK)
        await line.gone()
        closed.set()

    async with puppet(play) as behind, reaching(behind.url, idle=0.05) as upstream:
        await post(upstream)
        await closed.wait()
        assert upstream.load == (0, 0, 0, 0)
        await post(upstream)
    assert len(behind.lines) == 2


async def test_a_connection_that_rested_too_long_is_not_used_though_it_is_open_still() -> None:
    async with puppet(says(OK)) as behind, reaching(behind.url, idle=600) as upstream:
        await post(upstream)
        upstream._idle[-1].rested -= 601
        await post(upstream)
    assert [len(line.requests) for line in behind.lines] == [1, 1]


async def test_the_upstreams_own_limit_is_kept_when_it_is_shorter() -> None:
    closed = asyncio.Event()

    async def play(line: Line) -> None:
        await line.request()
        await line.say(b"HTTP/1.1 204 None\r\nKeep-Alive: timeout=1, max=5\r\n\r\n")
        await line.gone()
        closed.set()

    async with puppet(play) as behind, reaching(behind.url, idle=600) as upstream:
        await post(upstream)
        await closed.wait()


@pytest.mark.parametrize("idle, lines", [(0, b""), (600, b"Keep-Alive: timeout=0\r\n")])
async def test_a_connection_that_may_not_rest_is_closed_at_once(idle: int, lines: bytes) -> None:
    raw = OK.replace(b"Content", lines + b"Content")
    async with puppet(says(raw)) as behind, reaching(behind.url, idle=idle) as upstream:
        for _ in range(3):
            await post(upstream)
            assert upstream.load.idle == 0
    assert len(behind.lines) == 3


async def test_a_connection_that_was_closed_meanwhile_is_not_used_and_nobody_notices() -> None:
    async def once(line: Line) -> None:
        await line.request()
        await line.say(OK)

    async with puppet(once) as behind, reaching(behind.url, idle=600) as upstream:
        for _ in range(5):
            assert (await post(upstream)).status == 200
            await until(lambda: upstream.load.idle == 0)
    assert [len(line.requests) for line in behind.lines] == [1] * 5


@pytest.fixture
def quitter() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


@pytest.mark.parametrize("parting", [b"", b"HTTP/1.1 408 Late\r\nContent-Length: 0\r\n\r\n"])
async def test_what_the_loop_has_not_seen_yet_is_seen_before_a_connection_is_used(
    quitter: socket.socket, parting: bytes
) -> None:
    def answer_once() -> socket.socket:
        line, _ = quitter.accept()
        line.recv(1 << 16)
        line.sendall(OK)
        return line

    url = f"http://127.0.0.1:{quitter.getsockname()[1]}"
    async with reaching(url, idle=600) as upstream:
        for _ in range(3):
            answering = asyncio.create_task(asyncio.to_thread(answer_once))
            assert (await post(upstream)).body == b"ok"
            line = await answering
            # From here on the loop does not run, until the next request is on its way.
            line.sendall(parting)
            line.close()
            upstream._idle[-1].rested -= 1
        answering = asyncio.create_task(asyncio.to_thread(answer_once))
        assert (await post(upstream)).status == 200
        (await answering).close()


@pytest.mark.parametrize("garbage", [b"\r\n", b"x", OK, b"HTTP/1.1 200 OK\r\n\r\n"])
async def test_bytes_that_nobody_asked_for_end_a_connection(garbage: bytes) -> None:
    async def noisy(line: Line) -> None:
        await line.request()
        await line.say(OK)
        await line.say(garbage)
        assert await line.gone()

    async with puppet(noisy, says(OK)) as behind, reaching(behind.url, idle=600) as upstream:
        await asyncio.gather(post(upstream), return_exceptions=True)
        await until(lambda: upstream.load.idle == 0)
        assert (await post(upstream)).status == 200
    assert [len(line.requests) for line in behind.lines] == [1, 1]


async def test_an_upstream_that_closes_its_side_while_idle_loses_the_connection() -> None:
    async def half(line: Line) -> None:
        await line.request()
        await line.say(OK)
        line.writer.write_eof()
        assert await line.gone()

    async with puppet(half, says(OK)) as behind, reaching(behind.url, idle=600) as upstream:
        await post(upstream)
        await until(lambda: upstream.load.idle == 0)
        await post(upstream)
    assert [len(line.requests) for line in behind.lines] == [1, 1]


# Bounds.


async def test_a_thousand_at_once_share_eight_connections_and_get_their_own_answers() -> None:
    async def echo(line: Line) -> None:
        while seen := await line.request():
            await asyncio.sleep(0)
            size = str(len(seen.body)).encode()
            await line.say(b"HTTP/1.1 200 OK\r\nContent-Length: " + size + b"\r\n\r\n" + seen.body)

    async with puppet(echo) as behind, reaching(behind.url, max_connections=8) as upstream:
        bodies = [b"%d" % number for number in range(1000)]
        answers = await asyncio.gather(*[post(upstream, body) for body in bodies])
    assert [answer.body for answer in answers] == bodies
    assert sorted(seen.body for seen in behind.requests) == sorted(bodies)
    assert len(behind.lines) == 8


async def test_those_who_wait_are_served_in_their_order() -> None:
    async with puppet(says(OK)) as behind, reaching(behind.url, max_connections=1) as upstream:
        await asyncio.gather(*[post(upstream, b"%d" % number) for number in range(20)])
    assert [int(seen.body) for seen in behind.requests] == list(range(20))


async def test_no_more_wait_than_may() -> None:
    gate = asyncio.Event()

    async def slow(line: Line) -> None:
        while await line.request():
            await gate.wait()
            await line.say(OK)

    async with (
        puppet(slow) as behind,
        reaching(behind.url, max_connections=1, max_waiting=2) as upstream,
    ):
        asked = [asyncio.create_task(post(upstream))]
        await until(lambda: upstream.load.busy == 1)
        asked += [asyncio.create_task(post(upstream)) for _ in range(2)]
        await until(lambda: upstream.load.waiting == 2)
        with pytest.raises(UpstreamUnreachable, match="too many waiting"):
            await post(upstream)
        gate.set()
        assert [answer.status for answer in await asyncio.gather(*asked)] == [200] * 3
    assert len(behind.requests) == 3


async def test_waiting_for_a_connection_for_too_long_leaves_no_doubt() -> None:
    async def silent(line: Line) -> None:
        await line.request()
        await line.gone()

    async with puppet(silent) as behind, reaching(behind.url, max_connections=1) as upstream:
        first = asyncio.create_task(post(upstream))
        await until(lambda: upstream.load.busy == 1)
        with pytest.raises(UpstreamUnreachable, match=r"within 0\.01 s"):
            await send(upstream, b"POST", b"/", [], b"", timeout=0.01)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
    assert len(behind.requests) == 1


# Closing.


async def test_closing_lets_those_under_way_finish_and_refuses_others() -> None:
    gate = asyncio.Event()

    async def slow(line: Line) -> None:
        while await line.request():
            await gate.wait()
            await line.say(OK)

    async with puppet(slow) as behind, reaching(behind.url, max_connections=1) as upstream:
        asked = [asyncio.create_task(post(upstream)) for _ in range(3)]
        await until(lambda: upstream.load == (1, 0, 0, 2))
        closing = asyncio.create_task(upstream.close(grace=60))
        await asyncio.sleep(0)
        with pytest.raises(UpstreamUnreachable, match="closed"):
            await post(upstream)
        gate.set()
        assert [answer.status for answer in await asyncio.gather(*asked)] == [200] * 3
        await closing
        assert upstream.load == (0, 0, 0, 0)


async def test_closing_is_not_held_up_by_anything_idle() -> None:
    async with puppet(says(OK)) as behind, reaching(behind.url, idle=600) as upstream:
        await asyncio.gather(*[post(upstream) for _ in range(3)])
        await upstream.close(grace=60)
        assert upstream.load == (0, 0, 0, 0)
    assert all([await line.gone() for line in behind.lines])
