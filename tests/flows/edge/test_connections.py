"""Connections of clients, byte by byte, to an edge before a service that does as it is told."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from oncekey.compose.service import service_of
from oncekey.config import load
from oncekey.edge.serving.lane import EdgeProtocol
from tests.fixtures.edge_site import SECRET, token
from tests.fixtures.puppets import Line, Play, Puppet, puppet

pytestmark = pytest.mark.anyio

CONFIG = """
[auth.jwt]
secret = "{secret}"
audience = "edge"

[edge]
body_timeout = "500ms"

[upstreams.behind]
url = "{url}"
timeout = "60s"

[[routes]]
path = "/{{rest:path}}"
methods = ["GET", "POST"]
upstream = "behind"
policy = "ACCEPTED"
uncertain = "recover"
takeover = "recover"
recover = "hooks:broken"
"""
HOOKS = """
def broken(operation):
    raise ZeroDivisionError
"""
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, method: str, path: str, *lines: str, version: str = "1.1") -> None:
        """The head of a request of alice's; what follows it is for the test to send."""
        head = [f"{method} {path} HTTP/{version}", "Host: edge"]
        head += [f"Authorization: Bearer {token()}", *lines, "", ""]
        self.writer.write("\r\n".join(head).encode())

    async def head(self) -> bytes:
        return (await self.reader.readuntil(b"\r\n\r\n")).lower()

    async def end(self) -> bytes:
        """All that comes until the edge closes."""
        return await self.reader.read()


class Site:
    def __init__(self, port: int, behind: Puppet) -> None:
        self.port = port
        self.behind = behind

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            async with asyncio.timeout(60):
                yield Client(reader, writer)
        finally:
            writer.close()


@asynccontextmanager
async def edge_before(folder: Path, *plays: Play, **more: Any) -> AsyncIterator[Site]:
    async with puppet(*plays) as behind:
        (folder / "hooks.py").write_text(HOOKS)
        config = folder / "edge.toml"
        config.write_text(CONFIG.format(url=behind.url, secret=SECRET))
        service = service_of(load(config, {}, {"store.url": "memory://"}))
        options = {"http": EdgeProtocol, "port": 0, "log_level": "critical", **more}
        server = uvicorn.Server(uvicorn.Config(service, proxy_headers=False, **options))  # type: ignore[arg-type]
        serving = asyncio.create_task(server.serve())
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.005)
        try:
            yield Site(server.servers[0].sockets[0].getsockname()[1], behind)
        finally:
            server.should_exit = True
            await serving


async def test_a_stream_ends_when_its_client_leaves_though_others_wait_behind_it(
    tmp_path: Path,
) -> None:
    """A request that waits for its turn on the same connection hides nothing."""
    left = asyncio.Event()

    async def flows(line: Line) -> None:
        await line.request()
        await line.say(CHUNKED)
        try:
            while True:
                await line.say(b"1\r\nx\r\n")
                await asyncio.sleep(0.001)
        except ConnectionError:
            left.set()

    async with edge_before(tmp_path, flows) as site:
        async with site.client() as client:
            client.send("GET", "/stream")
            assert (await client.head()).startswith(b"http/1.1 200")
            client.send("GET", "/waits")
            await client.writer.drain()
            await client.reader.readexactly(100)
        async with asyncio.timeout(30):
            await left.wait()


async def test_the_length_of_what_head_asks_about_is_not_made_up(tmp_path: Path) -> None:
    async def play(line: Line) -> None:
        while await line.request():
            await line.say(CHUNKED)

    async with edge_before(tmp_path, play) as site, site.client() as client:
        for _ in range(2):
            client.send("HEAD", "/file")
            assert b"content-length" not in await client.head()


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
async def test_an_answer_that_has_no_body_has_no_length(tmp_path: Path, status: bytes) -> None:
    """A length would be that of a body which others keep."""

    async def play(line: Line) -> None:
        while await line.request():
            await line.say(b"HTTP/1.1 %b\r\netag: 1\r\n\r\n" % status)

    async with edge_before(tmp_path, play) as site, site.client() as client:
        for _ in range(2):
            client.send("GET", "/file")
            head = await client.head()
            assert head.startswith(b"http/1.1 %b" % status.lower())
            assert b"content-length" not in head
            assert b"transfer-encoding" not in head


async def test_what_repeats_while_another_is_answered_waits_for_its_turn(tmp_path: Path) -> None:
    """Also where it is read without being parsed, and its answer would be there sooner."""
    line_of_alice = f"Authorization: Bearer {token()}\r\n"
    go = asyncio.Event()

    async def play(line: Line) -> None:
        while seen := await line.request():
            key = dict(seen.headers)[b"idempotency-key"].rpartition(b":")[2]
            if key == b"slow":
                await go.wait()
            await line.say(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(key), key))

    def post(client: Client, key: str) -> None:
        head = f"POST /orders HTTP/1.1\r\nHost: edge\r\n{line_of_alice}Content-Length: 0\r\n"
        client.writer.write(f"{head}Idempotency-Key: {key}\r\n\r\n".encode())

    async def answer(client: Client) -> bytes:
        length = int((await client.head()).partition(b"content-length: ")[2].partition(b"\r")[0])
        return await client.reader.readexactly(length)

    async with edge_before(tmp_path, play) as site, site.client() as client, site.client() as other:
        post(client, "first")
        assert await answer(client) == b"first"
        post(client, "slow")
        post(other, "between")
        assert await answer(other) == b"between"
        post(client, "last")
        post(other, "after")
        assert await answer(other) == b"after"
        go.set()
        assert [await answer(client), await answer(client)] == [b"slow", b"last"]


async def test_a_client_of_http_1_0_gets_no_chunks(tmp_path: Path) -> None:
    async def play(line: Line) -> None:
        await line.request()
        await line.say(CHUNKED)
        for piece in (b"one", b"two"):
            await line.say(b"3\r\n%b\r\n" % piece)
            await asyncio.sleep(0.01)
        await line.say(b"0\r\n\r\n")
        await line.gone()

    async with edge_before(tmp_path, play) as site, site.client() as client:
        client.send("GET", "/stream", version="1.0")
        head = await client.head()
        assert b"transfer-encoding" not in head
        assert b"connection: close" in head
        assert await client.end() == b"onetwo"


@pytest.mark.parametrize("size", [10, 100_000], ids=["short", "long"])
async def test_half_an_answer_does_not_look_like_a_whole_one(tmp_path: Path, size: int) -> None:
    heard = asyncio.Event()

    async def play(line: Line) -> None:
        await line.request()
        await line.say(CHUNKED + b"3\r\none\r\n")
        await heard.wait()

    async with edge_before(tmp_path, play) as site, site.client() as client:
        client.send("POST", "/stream", f"Content-Length: {size}")
        client.writer.write(b"x" * size)
        assert b"transfer-encoding: chunked" in await client.head()
        await client.reader.readuntil(b"one\r\n")
        heard.set()
        assert await client.end() == b""


async def test_nor_does_it_to_a_client_of_http_1_0(tmp_path: Path) -> None:
    heard = asyncio.Event()

    async def play(line: Line) -> None:
        await line.request()
        await line.say(CHUNKED + b"3\r\none\r\n")
        await heard.wait()

    async with edge_before(tmp_path, play) as site, site.client() as client:
        client.send("GET", "/stream", version="1.0")
        await client.head()
        await client.reader.readexactly(3)
        heard.set()
        with pytest.raises(ConnectionResetError):
            await client.end()


async def test_a_request_that_repeats_another_may_take_longer_than_connections_rest(
    tmp_path: Path,
) -> None:
    line_of_alice = f"Authorization: Bearer {token()}\r\n"
    request = f"GET /slow HTTP/1.1\r\nHost: edge\r\n{line_of_alice}\r\n".encode()
    go = asyncio.Event()

    async def play(line: Line) -> None:
        while seen := await line.request():
            if b"/slow" in seen.line and len(site.behind.requests) > 1:
                await go.wait()
            await line.say(b"HTTP/1.1 204 No Content\r\n\r\n")

    async with edge_before(tmp_path, play, timeout_keep_alive=1) as site, site.client() as client:
        client.writer.write(request)
        assert (await client.head()).startswith(b"http/1.1 204")
        client.writer.write(request)
        async with site.client() as other:
            other.send("GET", "/quick")
            assert (await other.head()).startswith(b"http/1.1 204")
            # It has rested for too long now, and so would the first one have.
            assert await other.end() == b""
        go.set()
        assert (await client.head()).startswith(b"http/1.1 204")


@pytest.mark.parametrize("size", [10, 100_000], ids=["short", "long"])
@pytest.mark.parametrize("version", ["1.0", "1.1"])
async def test_an_answer_that_is_whole_says_how_long_it_is(
    tmp_path: Path, size: int, version: str
) -> None:
    async def play(line: Line) -> None:
        await line.request()
        await line.say(CHUNKED + b"3\r\none\r\n0\r\n\r\n")
        await line.gone()

    async with edge_before(tmp_path, play) as site:
        lines = (f"Content-Length: {size}", "Idempotency-Key: k", "Connection: close")
        for marked in (False, True):
            async with site.client() as client:
                client.send("POST", "/orders", *lines, version=version)
                client.writer.write(b"x" * size)
                head = await client.head()
                assert b"transfer-encoding" not in head
                assert b"content-length: 3\r\n" in head
                assert (b"idempotent-replayed" in head) is marked
                assert await client.end() == b"one"


async def test_the_length_of_a_body_goes_on_with_it(tmp_path: Path) -> None:
    """Many services read nothing of a body whose length they are not told."""
    size, heads = 200_000, []
    begun = asyncio.Event()

    async def play(line: Line) -> None:
        heads.append(await line.head() or b"")
        begun.set()
        await line.reader.readexactly(size)
        await line.say(b"HTTP/1.1 204 No Content\r\n\r\n")
        await line.gone()

    async with edge_before(tmp_path, play) as site, site.client() as client:
        client.send("POST", "/upload", f"Content-Length: {size}")
        client.writer.write(b"x" * (size // 2))
        await begun.wait()
        client.writer.write(b"x" * (size // 2))
        assert (await client.head()).startswith(b"http/1.1 204")
        assert b"\r\ncontent-length: 200000\r\n" in heads[0]
        assert b"transfer-encoding" not in heads[0]


async def test_a_body_that_does_not_come_to_its_end_is_its_senders_fault(tmp_path: Path) -> None:
    """Also when a part of it has gone on already."""
    begun = asyncio.Event()

    async def play(line: Line) -> None:
        await line.head()
        begun.set()
        await line.gone()

    async with edge_before(tmp_path, play) as site, site.client() as client:
        client.send("POST", "/upload", "Content-Length: 200000")
        client.writer.write(b"x" * 100_000)
        await begun.wait()
        head = await client.head()
        assert head.startswith(b"http/1.1 408")
        assert b"/request-timeout" in head


@pytest.mark.parametrize("size", [10, 100_000], ids=["short", "long"])
async def test_whatever_breaks_is_told_as_a_problem(tmp_path: Path, size: int) -> None:
    async def hangs_up(line: Line) -> None:
        await line.request()

    async with edge_before(tmp_path, hangs_up) as site, site.client() as client:
        heads = []
        for _ in range(2):
            client.send("POST", "/orders", f"Content-Length: {size}", "Idempotency-Key: k")
            client.writer.write(b"x" * size)
            heads.append(await client.head())
            length = int(heads[-1].partition(b"content-length: ")[2].partition(b"\r")[0])
            await client.reader.readexactly(length)
        uncertain, broken = heads
        assert uncertain.startswith(b"http/1.1 502")
        # The function to recover with is asked, and fails.
        assert broken.startswith(b"http/1.1 500")
        assert b"application/problem+json" in broken
        assert b"/internal-error" in broken


async def test_many_requests_for_another_protocol_at_once_are_answered(tmp_path: Path) -> None:
    async def play(line: Line) -> None:
        while await line.request():
            await line.say(b"HTTP/1.1 204 No Content\r\n\r\n")

    async with edge_before(tmp_path, play) as site, site.client() as client:
        request = b"GET / HTTP/1.1\r\nHost: edge\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n"
        many = 2000
        client.writer.write(request * many)
        for _ in range(many):
            head = await client.head()
            assert head.startswith(b"http/1.1 401")
            size = int(head.partition(b"content-length: ")[2].partition(b"\r")[0])
            await client.reader.readexactly(size)
