"""Clocks that are set, as clocks are: what died lapses all the same, and what is alive does not."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest

from oncekey import App, Context
from oncekey.core.ports import Found, Peek
from tests.fixtures.claimant import claimant, ref_of
from tests.fixtures.processes import Process, Start
from tests.fixtures.restate_server import RestateServer
from tests.fixtures.stores import Caller, Place, until

pytestmark = pytest.mark.restate

LIFE = {"lease": 1.5, "heartbeat": 0.2}
HOUR = 3600.0


@pytest.fixture
def place(restate_of_the_file: RestateServer) -> Iterator[Place]:
    opened = Place(restate_of_the_file.url())
    yield opened
    opened.close()


@pytest.fixture
def serving(place: Place) -> Caller:
    """It is there first, so that Restate calls this process for everything."""
    return place.open(**LIFE)


@pytest.fixture
def holder(serving: Caller, place: Place, start: Start) -> Process:
    process = start(claimant, place.url, LIFE)
    process.tell(("begin", ["k"], {}))
    assert process.hear() == "Proceed"
    return process


def is_lapsed(caller: Caller) -> bool:
    found = caller.ask(Peek(ref_of("k").digest))
    assert isinstance(found, Found)
    return found.lapsed


def wait_for_signs_of_life(caller: Caller) -> None:
    """Until each process that lives has given one more."""
    told = caller.store.run(lambda cluster: cluster.owners("silences", None))  # type: ignore[attr-defined]
    waited, heard = set(told), set()

    def all_heard() -> bool:
        silences = caller.store.run(lambda cluster: cluster.owners("silences", None))  # type: ignore[attr-defined]
        heard.update(owner for owner, silence in silences.items() if silence == 0)
        return heard >= waited

    until(all_heard)


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_a_clock_that_was_set_and_set_right_keeps_no_claim_of_the_dead(
    jump: float, serving: Caller, holder: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + jump)
    wait_for_signs_of_life(serving)
    assert not is_lapsed(serving)
    monkeypatch.setattr(time, "time", real)
    wait_for_signs_of_life(serving)
    assert not is_lapsed(serving)

    holder.kill()

    until(lambda: is_lapsed(serving))


app = App()


@app.workflow
async def rest(ctx: Context) -> str:
    await ctx.sleep(0.05)
    return "rested"


def ahead(said: Any, url: str) -> None:
    """A process whose clock is an hour ahead, from its start."""
    real = time.time_ns
    time.time_ns = lambda: real() + round(HOUR * 1e9)

    async def work() -> None:
        async with app.open(url):
            alone = await app.engine.create_promise("default", "alone", timeout=0.05)
            said.send(await (await app.start(rest)).result(30))
            settled = await app.promise(f"id:{alone.promise.public_id}", wait=30)
            said.send(settled.state.name)

    asyncio.run(work())


def test_what_is_timed_where_the_clock_is_ahead_takes_no_longer_than_it_says(
    serving: Caller, place: Place, start: Start
) -> None:
    process = start(ahead, place.url)
    assert (process.hear(), process.hear()) == ("rested", "TIMED_OUT")
