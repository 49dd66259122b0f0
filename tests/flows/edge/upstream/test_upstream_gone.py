"""Upstreams that are not there, that die, and callers who leave: what is known, and that nothing is
asked twice."""

import asyncio
import signal
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack
from multiprocessing.connection import Connection as Pipe

import pytest

from oncekey.core.errors import UpstreamError, UpstreamUncertain, UpstreamUnreachable
from oncekey.core.model import Headers
from tests.fixtures.asking import CHUNKED, OK, certain, post
from tests.fixtures.certificates import Certificates
from tests.fixtures.processes import Start
from tests.fixtures.puppets import Heard, Line, puppet, reaching, says, until

pytestmark = pytest.mark.anyio


async def silent(line: Line) -> None:
    await line.request()
    await line.gone()


# Upstreams that are not there.


async def test_a_refused_connection_leaves_no_doubt(free_port: int) -> None:
    async with reaching(f"http://127.0.0.1:{free_port}") as upstream:
        ends = await asyncio.gather(*[post(upstream) for _ in range(300)], return_exceptions=True)
        assert all(isinstance(end, UpstreamUnreachable) for end in ends)
        assert upstream.load == (0, 0, 0, 0)


async def test_a_name_that_nobody_has_leaves_no_doubt() -> None:
    async with reaching("http://nobody.invalid") as upstream:
        with pytest.raises(UpstreamUnreachable):
            await post(upstream)


async def test_a_socket_that_is_not_there_leaves_no_doubt() -> None:
    async with reaching("http+unix://%2Fnowhere%2Fapp.sock") as upstream:
        with pytest.raises(UpstreamUnreachable, match=r"/nowhere/app\.sock"):
            await post(upstream)


@pytest.fixture
def full_listener() -> Iterator[int]:
    """A port where connections are neither taken nor refused."""
    with ExitStack() as ends:
        listener = ends.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            knocking = ends.enter_context(socket.socket())
            knocking.setblocking(False)
            knocking.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


async def test_a_connection_that_does_not_come_leaves_no_doubt(full_listener: int) -> None:
    url = f"http://127.0.0.1:{full_listener}"
    async with reaching(url, connect_timeout=0.2, max_connections=2) as upstream:
        ends = await asyncio.gather(*[post(upstream) for _ in range(20)], return_exceptions=True)
        assert all(isinstance(end, UpstreamUnreachable) for end in ends)
        assert "no connection within 0.2 s" in str(ends[0])


async def test_everyone_who_asks_has_an_attempt_that_began_after_it(full_listener: int) -> None:
    async with reaching(f"http://127.0.0.1:{full_listener}", connect_timeout=0.5) as upstream:
        first, second = Heard(), Heard()
        upstream.ask(b"POST", b"/", [], b"", first)
        asked = time.monotonic()
        await until(lambda: time.monotonic() > asked + 0.2)
        upstream.ask(b"POST", b"/", [], b"", second)
        await first.end()
        assert not second.told
        await second.end()
        assert certain(first.error)
        assert certain(second.error)


async def test_an_upstream_that_hangs_up_at_once_is_asked_once_per_connection() -> None:
    async def rude(line: Line) -> None:
        line.reset()

    async with puppet(rude) as behind, reaching(behind.url) as upstream:
        for _ in range(5):
            with pytest.raises(UpstreamError):
                await post(upstream)
    assert not behind.requests


async def test_those_who_wait_are_served_by_what_is_left_when_no_more_connections_are_taken() -> (
    None
):
    gate = asyncio.Event()

    async def slow(line: Line) -> None:
        while await line.request():
            await gate.wait()
            await line.say(OK)

    async with puppet(slow) as behind, reaching(behind.url, max_connections=4) as upstream:
        asked = [asyncio.create_task(post(upstream))]
        await until(lambda: upstream.load.busy == 1)
        behind.stop_accepting()
        asked += [asyncio.create_task(post(upstream)) for _ in range(3)]
        await until(lambda: upstream.load == (1, 0, 0, 3))
        gate.set()
        assert [answer.status for answer in await asyncio.gather(*asked)] == [200] * 4
    assert len(behind.lines) == 1


# TLS.


@pytest.fixture(scope="module")
def certificates() -> Certificates:
    return Certificates()


async def test_https_is_verified_and_works(certificates: Certificates) -> None:
    async with (
        puppet(says(OK), tls=certificates.server("localhost"), host="localhost") as behind,
        reaching(behind.url, tls=certificates.client()) as upstream,
    ):
        answers = await asyncio.gather(*[post(upstream, b"x" * 100_000) for _ in range(5)])
        assert [answer.body for answer in answers] == [b"ok"] * 5
        assert (await post(upstream)).status == 200
        assert upstream.load.idle == 5


@pytest.mark.parametrize("trusted, name", [(False, "localhost"), (True, "elsewhere.example")])
async def test_a_certificate_that_does_not_fit_leaves_no_doubt(
    certificates: Certificates, trusted: bool, name: str
) -> None:
    async with (
        puppet(says(OK), tls=certificates.server(name), host="localhost") as behind,
        reaching(behind.url, tls=certificates.client() if trusted else None) as upstream,
    ):
        with pytest.raises(UpstreamUnreachable, match="certificate"):
            await post(upstream)
    assert not behind.requests


async def test_https_to_one_that_does_not_speak_it_leaves_no_doubt() -> None:
    async def plain(line: Line) -> None:
        await line.reader.read(1)
        await line.say(OK)

    async with (
        puppet(plain) as behind,
        reaching(behind.url.replace("http:", "https:")) as upstream,
    ):
        with pytest.raises(UpstreamUnreachable):
            await post(upstream)


async def test_a_context_for_tls_is_made_only_for_https() -> None:
    context = ssl.create_default_context()
    async with puppet(says(OK)) as behind, reaching(behind.url, tls=context) as upstream:
        assert (await post(upstream)).status == 200


# Processes that are killed.


def serve_until_killed(said: Pipe, port: int) -> None:
    """Answers POST /orders; a POST of `die` is heard, and never answered."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        said.send("ready")
        while True:
            line, _ = listener.accept()
            while request := line.recv(1 << 16):
                if request.endswith(b"die"):
                    said.send("asked")
                    signal.pause()
                line.sendall(OK)


async def test_a_process_that_dies_before_it_is_asked_leaves_no_doubt(
    start: Start, free_port: int
) -> None:
    process = start(serve_until_killed, free_port)
    assert process.hear() == "ready"
    async with reaching(f"http://127.0.0.1:{free_port}", idle=600) as upstream:
        assert (await post(upstream)).status == 200
        process.kill()
        upstream._idle[-1].rested -= 1
        with pytest.raises(UpstreamUnreachable):
            await post(upstream)
        assert upstream.load == (0, 0, 0, 0)


async def test_a_process_that_dies_while_it_is_asked_leaves_doubt(
    start: Start, free_port: int
) -> None:
    process = start(serve_until_killed, free_port)
    assert process.hear() == "ready"
    async with reaching(f"http://127.0.0.1:{free_port}") as upstream:
        asked = asyncio.create_task(post(upstream, b"die"))
        assert await asyncio.to_thread(process.hear) == "asked"
        process.kill()
        with pytest.raises(UpstreamUncertain):
            await asked


async def test_a_process_that_comes_back_is_asked_again(start: Start, free_port: int) -> None:
    async with reaching(f"http://127.0.0.1:{free_port}", idle=600) as upstream:
        for _ in range(3):
            process = start(serve_until_killed, free_port)
            assert process.hear() == "ready"
            assert (await post(upstream)).status == 200
            process.kill()
            await until(lambda: upstream.load.idle == 0)
            with pytest.raises(UpstreamUnreachable):
                await post(upstream)


# Closing, abandoning, and listeners that fail.


async def test_what_is_cut_off_by_closing_is_told_as_it_is() -> None:
    async with puppet(silent) as behind, reaching(behind.url, max_connections=1) as upstream:
        asked, waiting = Heard(), Heard()
        upstream.ask(b"POST", b"/", [], b"", asked)
        upstream.ask(b"POST", b"/", [], b"", waiting)
        await until(lambda: len(behind.requests) == 1)
        await upstream.close(grace=0.01)
        assert not certain((await asked.end()).error)
        assert certain((await waiting.end()).error)
        assert upstream.load == (0, 0, 0, 0)


async def test_closing_ends_connections_that_are_still_being_made(full_listener: int) -> None:
    async with reaching(f"http://127.0.0.1:{full_listener}") as upstream:
        heard = Heard()
        upstream.ask(b"POST", b"/", [], b"", heard)
        await until(lambda: upstream.load.connecting == 1)
        await upstream.close()
        assert certain((await heard.end()).error)
        assert upstream.load == (0, 0, 0, 0)


async def test_an_ask_that_is_abandoned_ends_its_connection_and_is_told_nothing() -> None:
    gate = asyncio.Event()

    async def slow(line: Line) -> None:
        await line.request()
        gate.set()
        assert await line.gone()

    async with (
        puppet(slow, says(OK)) as behind,
        reaching(behind.url, max_connections=1) as upstream,
    ):
        first, second, third = Heard(), Heard(), Heard()
        asked = upstream.ask(b"POST", b"/", [], b"", first)
        left = upstream.ask(b"POST", b"/", [], b"", second)
        upstream.ask(b"POST", b"/", [], b"third", third)
        await gate.wait()
        left.abandon()
        asked.abandon()
        asked.abandon()
        await third.end()
        assert third.told == ["whole"]
    assert not first.told
    assert not second.told
    assert [seen.body for seen in behind.requests] == [b"", b"third"]


async def test_who_is_cancelled_learns_what_is_known_and_the_connection_ends() -> None:
    async with puppet(silent) as behind, reaching(behind.url) as upstream:
        asked = asyncio.create_task(post(upstream))
        await until(lambda: len(behind.requests) == 1)
        asked.cancel()
        with pytest.raises(UpstreamUncertain):
            await asked
        assert upstream.load == (0, 0, 0, 0)


class Clumsy(Heard):
    """A listener that fails at everything."""

    def whole(self, status: int, headers: Headers, body: bytes) -> None:
        super().whole(status, headers, body)
        raise RuntimeError("clumsy")

    def began(self, status: int, headers: Headers) -> None:
        super().began(status, headers)
        raise RuntimeError("clumsy")

    def chunk(self, data: bytes) -> None:
        super().chunk(data)
        raise RuntimeError("clumsy")

    def failed(self, error: UpstreamError) -> None:
        super().failed(error)
        raise RuntimeError("clumsy")


@pytest.mark.parametrize(
    "raw, mistakes",
    [
        (OK, 1),
        (CHUNKED + b"2\r\nok\r\n", 2),
        (b"nonsense", 1),
    ],
)
async def test_a_listener_that_fails_harms_nobody_else(raw: bytes, mistakes: int) -> None:
    told: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: told.append(str(context["exception"]))
    )

    async def play(line: Line) -> None:
        await line.request()
        await line.say(raw)
        if raw.startswith(CHUNKED):
            await asyncio.sleep(0)
            await line.say(b"0\r\n\r\n")
        await says(OK)(line)

    async with puppet(play, says(OK)) as behind, reaching(behind.url) as upstream:
        clumsy = Clumsy()
        upstream.ask(b"POST", b"/", [], b"", clumsy)
        await until(lambda: bool(told) and not upstream.load.busy)
        assert (await post(upstream)).body == b"ok"
    assert set(told) == {"clumsy"}
    assert 1 <= len(told) <= mistakes
