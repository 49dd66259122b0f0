"""A call waits as long as it asked for, within bounds, and not for a server that is stopping."""

import asyncio

import pytest

from oncekey.api.grpc.deadline import bounded
from oncekey.api.patience import LONGEST, Patience

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "asked, left, seconds",
    [
        (5.0, None, 5.0),
        (3600.0, None, LONGEST),
        (5.0, 3600.0, 5.0),
        (30.0, 10.0, 9.0),
        (30.0, 1.0, 0.8),
        (30.0, 0.0, 0.0),
        (30.0, -1.0, 0.0),
    ],
)
async def test_a_wait_is_bounded(asked: float, left: float | None, seconds: float) -> None:
    assert bounded(asked, left) == pytest.approx(seconds)


async def test_what_comes_is_answered() -> None:
    async def settled() -> str:
        return "resolved"

    assert await Patience().wait(settled()) == "resolved"


async def test_what_is_raised_is_raised() -> None:
    async def broken() -> str:
        raise LookupError

    with pytest.raises(LookupError):
        await Patience().wait(broken())


async def test_the_end_lets_everybody_go_at_once() -> None:
    patience, waiting, stopped = Patience(), asyncio.Event(), asyncio.Event()

    async def forever() -> str:
        waiting.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "never"

    call = asyncio.ensure_future(patience.wait(forever()))
    await waiting.wait()
    patience.end()
    assert await call is None
    await stopped.wait()


async def test_nobody_waits_after_the_end() -> None:
    patience = Patience()
    patience.end()

    async def forever() -> str:
        await asyncio.Event().wait()
        return "never"

    assert await patience.wait(forever()) is None


async def test_a_call_that_is_given_up_waits_no_longer() -> None:
    patience, waiting, stopped = Patience(), asyncio.Event(), asyncio.Event()

    async def forever() -> str:
        waiting.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "never"

    call = asyncio.ensure_future(patience.wait(forever()))
    await waiting.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await stopped.wait()
