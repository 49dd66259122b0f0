"""Whether Restate has heard of a call is never taken to be less than may be: on routes that fail
open, what it has not heard of is run without it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from oncekey.core.errors import StoreUnavailable
from oncekey.stores.restate.calling import Calling, Unsent
from oncekey.stores.restate.envelope import Envelope
from oncekey.stores.restate.ingress import NotServed

ENVELOPE = Envelope("n", 1, "t-a:b:c", "POST /", "k", b"f", "r", "d", 1, 1, b"POST", b"/", (), b"")
NOT_FOUND, BROKEN = b"404 Not Found", b"500 Internal Server Error"


@asynccontextmanager
async def node(*answers: bytes | None) -> AsyncIterator[str]:
    """Answers so, and the last way from then on; None is no answer."""
    left = list(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        status = left.pop(0) if len(left) > 1 else left[0]
        if status is not None:
            writer.write(b"HTTP/1.1 %b\r\ncontent-length: 0\r\nconnection: close\r\n\r\n" % status)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def trouble(*answers: bytes | None) -> type[Exception]:
    async with node(*answers) as url:
        calling = Calling([url], "space", 0.3)
        with pytest.raises(StoreUnavailable) as raised:
            await calling.call(b"d", "shared", ENVELOPE, 0.3)
        await calling.close()
    return raised.type


@pytest.mark.parametrize(
    "answers, told",
    [
        ([NOT_FOUND], NotServed),
        ([b"429 Too Many Requests"], Unsent),
        ([None], StoreUnavailable),
        # The way back was lost, perhaps.
        ([BROKEN], StoreUnavailable),
        # Of a node that has only begun, after one that has the call.
        ([None, NOT_FOUND], StoreUnavailable),
        ([BROKEN, NOT_FOUND], StoreUnavailable),
    ],
)
def test_what_may_have_been_heard_counts(
    answers: list[bytes | None], told: type[Exception]
) -> None:
    assert asyncio.run(trouble(*answers)) is told
