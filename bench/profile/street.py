"""A server, the service behind it and those who call it, all on one event loop: what a profiler
sees is one process, and the same requests in the same number each time."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import uvicorn
from httptools import HttpRequestParser, HttpResponseParser

from oncekey.compose.service import Service
from oncekey.edge.serving.lane import EdgeProtocol

_ANSWER = b'{"id":"ord_1","ok":true}'
ANSWER = (
    b"HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
    % (
        len(_ANSWER),
        _ANSWER,
    )
)


class Behind(asyncio.Protocol):
    """A service that answers every request alike, at once."""

    def __init__(self) -> None:
        self._parser = HttpRequestParser(self)

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        self._transport.write(ANSWER)


class Caller(asyncio.Protocol):
    """One connection; one request at a time."""

    def __init__(self) -> None:
        self._answered: asyncio.Future[int] | None = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._parser = HttpResponseParser(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        assert self._answered is not None
        status = self._parser.get_status_code()
        self._parser = HttpResponseParser(self)
        self._answered.set_result(status)

    def ask(self, request: bytes) -> asyncio.Future[int]:
        """The status of its answer."""
        self._answered = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._answered

    def close(self) -> None:
        self._transport.close()


@asynccontextmanager
async def serving(service: Service) -> AsyncIterator[int]:
    """The port it listens on, as `oncekey serve` runs it."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
    config = uvicorn.Config(
        service,
        http=EdgeProtocol,
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
    )
    server = uvicorn.Server(config)
    with suppress(ImportError):
        # Not in every commit that is compared with this one.
        from oncekey.cli.garbage import collect_seldom

        collect_seldom()
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listening])
    ticking = asyncio.create_task(server.main_loop())
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        await ticking
        await server.shutdown(sockets=[listening])


@asynccontextmanager
async def behind() -> AsyncIterator[int]:
    server = await asyncio.get_running_loop().create_server(Behind, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@asynccontextmanager
async def callers(port: int, number: int) -> AsyncIterator[list[Caller]]:
    loop = asyncio.get_running_loop()
    found = [(await loop.create_connection(Caller, "127.0.0.1", port))[1] for _ in range(number)]
    try:
        yield found
    finally:
        for each in found:
            each.close()


def post(path: str, body: bytes, lines: dict[str, str]) -> bytes:
    head = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json"]
    head += [f"Content-Length: {len(body)}", *(f"{name}: {value}" for name, value in lines.items())]
    return "\r\n".join([*head, "", ""]).encode() + body
