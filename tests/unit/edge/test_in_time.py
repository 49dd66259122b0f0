"""Bodies that others read: in time, or answered for them."""

import asyncio
from collections.abc import Sequence

import pytest

from oncekey.edge.in_time import InTime
from oncekey.integrations.asgi import Message

pytestmark = pytest.mark.anyio

PIECE: Message = {"type": "http.request", "body": b"a", "more_body": True}
LAST: Message = {"type": "http.request", "body": b"b"}
GONE: Message = {"type": "http.disconnect"}
START: Message = {"type": "http.response.start", "status": 201, "headers": []}
BODY: Message = {"type": "http.response.body", "body": b"done"}


class Line:
    """What a client sends, and then nothing more; and what it is sent."""

    def __init__(self, *messages: Message) -> None:
        self._messages = [*messages]
        self.more = asyncio.Event()
        self.sent: list[Message] = []

    async def receive(self) -> Message:
        if not self._messages:
            await self.more.wait()
            return GONE
        return self._messages.pop(0)

    async def send(self, message: Message) -> None:
        self.sent.append(message)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("came", [(), (PIECE,), (PIECE, PIECE)])
async def test_who_is_late_is_told_so(whole: bool, came: Sequence[Message]) -> None:
    line = Line(*came)
    in_time = InTime(line.receive, line.send, 0.01, whole=whole)
    assert [await in_time.receive() for _ in came] == list(came)
    assert await in_time.receive() == GONE
    for message in (START, BODY):
        await in_time.send(message)
    start, body = line.sent
    assert start["status"] == 408
    assert (b"connection", b"close") in start["headers"]
    assert b"request-timeout" in body["body"]


async def test_an_answer_that_has_begun_goes_on() -> None:
    line = Line(PIECE)
    in_time = InTime(line.receive, line.send, 0.01, whole=False)
    await in_time.send(START)
    assert await in_time.receive() == PIECE
    assert await in_time.receive() == GONE
    await in_time.send(BODY)
    assert line.sent == [START, BODY]


@pytest.mark.parametrize("whole", [True, False])
async def test_after_the_body_nobody_is_hurried(whole: bool) -> None:
    """Whoever listens then waits for the client to leave, which may take any time."""
    line = Line(LAST)
    in_time = InTime(line.receive, line.send, 0.01, whole=whole)
    assert await in_time.receive() == LAST
    listening = asyncio.create_task(in_time.receive())
    # Longer than a body may take: what is late by then is only what follows it.
    late = InTime(Line().receive, line.send, 0.02, whole=True)
    assert await late.receive() == GONE
    assert not listening.done()
    line.more.set()
    assert await listening == GONE
    await in_time.send(START)
    assert line.sent == [START]
