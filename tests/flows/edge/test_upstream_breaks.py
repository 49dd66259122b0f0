"""Upstreams that break, lie, stall and die: what is known then, and that nothing is asked twice."""

import asyncio
import signal
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack
from multiprocessing.connection import Connection as Pipe

import pytest

from oncekey.core.errors import (
    UpstreamError,
    UpstreamTimeout,
    UpstreamUncertain,
    UpstreamUnreachable,
)
from oncekey.core.model import Headers
from oncekey.edge.upstream import Answer, Upstream
from tests.fixtures.certificates import Certificates
from tests.fixtures.processes import Start
from tests.fixtures.puppets import Heard, Line, Play, puppet, reaching, says, until

pytestmark = pytest.mark.anyio

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(params=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": request.param == "uvloop"}


async def post(upstream: Upstream, body: bytes = b"{}") -> Answer:
    return await upstream.send(b"POST", b"/orders", [], body)


def certain(error: UpstreamError | None) -> bool:
    assert error is not None
    return isinstance(error, UpstreamUnreachable)


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
            await upstream.send(b"POST", b"/", [], b"", timeout=0.05)


async def test_nobody_is_late_because_the_loop_was_held_up() -> None:
    async def holding(line: Line) -> None:
        while await line.request():
            line.writer.write(OK)
            time.sleep(0.5)  # noqa: ASYNC251 - this is what holds it up

    async with puppet(holding) as behind, reaching(behind.url, timeout=0.2) as upstream:
        for _ in range(3):
            assert (await post(upstream)).body == b"ok"


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


async def test_a_cancelled_send_ends_its_connection() -> None:
    async with puppet(silent) as behind, reaching(behind.url) as upstream:
        asked = asyncio.create_task(post(upstream))
        await until(lambda: len(behind.requests) == 1)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
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
