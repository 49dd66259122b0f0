"""Which ticks are had: missed ones, paused and changed schedules, several schedulers."""

import asyncio

import pytest

import oncekey
from oncekey import Ledger
from oncekey.core.errors import NotFound
from oncekey.schedules import CallUrl, Every, Missed, Schedule, Scheduler
from tests.fixtures.frozen import FrozenClock
from tests.fixtures.receiver import SECRET, Receiver
from tests.fixtures.ticks import HOUR, MINUTE, START, calling, key, scheduler_of

pytestmark = pytest.mark.anyio


# -- missed ticks ------------------------------------------------------------------------------


@pytest.mark.parametrize("missed, hours", [("all", [1, 2, 3, 4, 5]), ("last", [5]), ("skip", [])])
async def test_after_a_night_without_scheduler(
    ledger: Ledger, clock: FrozenClock, receiver: Receiver, missed: Missed, hours: list[int]
) -> None:
    await (await scheduler_of(ledger, calling(receiver, every=HOUR, missed=missed))).close()
    clock.advance(5 * HOUR + 30 * MINUTE)
    scheduler = await scheduler_of(ledger, calling(receiver, every=HOUR, missed=missed))
    await scheduler.run_once()
    assert receiver.keys == [key(60 * hour) for hour in hours]
    clock.advance(30 * MINUTE)
    await scheduler.run_once()
    await scheduler.close()
    assert receiver.keys == [key(60 * hour) for hour in [*hours, 6]]


async def test_what_is_left_out_is_told(
    ledger: Ledger, clock: FrozenClock, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler = await scheduler_of(ledger, calling(receiver))
    clock.advance(5 * MINUTE)
    await scheduler.run_once()
    await scheduler.close()
    told = f"ticks from {START + MINUTE} until before {START + 5 * MINUTE} are left out"
    assert told in caplog.text


# -- pausing and declaring ---------------------------------------------------------------------


async def test_a_paused_schedule_has_no_ticks_and_makes_up_for_none(
    ledger: Ledger, clock: FrozenClock, receiver: Receiver
) -> None:
    scheduler = await scheduler_of(ledger, calling(receiver, missed="all"))
    assert (await scheduler.pause("nightly")).paused
    clock.advance(3 * MINUTE)
    assert await scheduler.run_once() == []
    resumed = await scheduler.resume("nightly")
    assert (resumed.paused, resumed.next_at) == (False, START + 4 * MINUTE)
    assert await scheduler.run_once() == []
    clock.advance(MINUTE)
    assert [ran.key for ran in await scheduler.run_once()] == [key(4)]
    await scheduler.close()


async def test_a_pause_holds_in_the_middle_of_making_up(
    ledger: Ledger, clock: FrozenClock, receiver: Receiver
) -> None:
    scheduler = await scheduler_of(ledger, calling(receiver, missed="all"))
    clock.advance(5 * MINUTE)
    receiver.gate.clear()
    running = asyncio.create_task(scheduler.run_once())
    await asyncio.to_thread(receiver.arrived.acquire)
    await scheduler.pause("nightly")
    receiver.gate.set()
    assert [ran.key for ran in await running] == [key(1)]
    await scheduler.close()


async def test_a_schedule_can_be_declared_paused(
    ledger: Ledger, clock: FrozenClock, receiver: Receiver
) -> None:
    scheduler = await scheduler_of(ledger, calling(receiver, paused=True))
    clock.advance(MINUTE)
    assert await scheduler.run_once() == []
    await scheduler.close()


async def test_what_does_not_exist_cannot_be_paused_or_resumed(ledger: Ledger) -> None:
    scheduler = await scheduler_of(ledger)
    for verb in (scheduler.pause, scheduler.resume):
        with pytest.raises(NotFound, match="there is no schedule 'weekly'"):
            await verb("weekly")
    await scheduler.close()


async def test_what_the_configuration_no_longer_declares_disappears(
    ledger: Ledger, clock: FrozenClock, receiver: Receiver
) -> None:
    await (await scheduler_of(ledger, calling(receiver, "by-code"))).close()
    for names in (("kept", "gone"), ("kept",)):
        schedules = [calling(receiver, name) for name in names]
        await (await scheduler_of(ledger, *schedules, origin="configuration")).close()
    clock.advance(MINUTE)
    every = await scheduler_of(ledger, calling(receiver, "by-code"), calling(receiver, "kept"))
    ran = await every.run_once()
    await every.close()
    assert sorted(each.key for each in ran) == [key(1, "by-code"), key(1, "kept")]


async def test_new_data_holds_for_the_tick_that_is_due(
    ledger: Ledger, clock: FrozenClock, receiver: Receiver
) -> None:
    await (await scheduler_of(ledger, calling(receiver, data=1))).close()
    clock.advance(MINUTE)
    scheduler = await scheduler_of(ledger, calling(receiver, data=2))
    await scheduler.run_once()
    await scheduler.close()
    assert [(each.key, each.body["data"]) for each in receiver.deliveries] == [(key(1), 2)]


# -- several schedulers ------------------------------------------------------------------------


async def test_while_one_is_at_a_tick_others_leave_it_alone(
    ledger: Ledger, clock: FrozenClock, receiver: Receiver
) -> None:
    schedulers = [await scheduler_of(ledger, calling(receiver)) for _ in range(3)]
    clock.advance(MINUTE)
    receiver.gate.clear()
    first = asyncio.create_task(schedulers[0].run_once())
    await asyncio.to_thread(receiver.arrived.acquire)
    assert [await each.run_once() for each in schedulers[1:]] == [[], []]
    receiver.gate.set()
    assert [ran.key for ran in await first] == [key(1)]
    assert [await each.run_once() for each in schedulers] == [[], [], []]
    for each in schedulers:
        await each.close()
    assert receiver.keys == [key(1)]


async def test_one_that_is_stopped_in_the_middle_leaves_its_tick_to_others(
    ledger: Ledger, clock: FrozenClock, receiver: Receiver
) -> None:
    stopped = await scheduler_of(ledger, calling(receiver), grace=0.0)
    other = await scheduler_of(ledger, calling(receiver))
    clock.advance(MINUTE)
    receiver.gate.clear()
    running = asyncio.create_task(stopped.run_once())
    await asyncio.to_thread(receiver.arrived.acquire)
    await stopped.close()
    with pytest.raises(asyncio.CancelledError):
        await running
    receiver.gate.set()
    assert [ran.key for ran in await other.run_once()] == [key(1)]
    await other.close()
    assert receiver.effects == {key(1): 1}


async def test_a_slow_receiver_holds_no_other_schedule_up(
    ledger: Ledger, clock: FrozenClock, receiver: Receiver
) -> None:
    quick = Receiver()
    schedules = calling(receiver, "slow"), calling(quick, "quick")
    scheduler = await scheduler_of(ledger, *schedules)
    receiver.gate.clear()
    clock.advance(MINUTE)
    running = asyncio.create_task(scheduler.run_once())
    await asyncio.to_thread(receiver.arrived.acquire)
    await asyncio.to_thread(quick.arrived.acquire)
    receiver.gate.set()
    assert sorted(ran.key for ran in await running) == [key(1, "quick"), key(1, "slow")]
    await scheduler.close()
    quick.close()


# -- the loop ----------------------------------------------------------------------------------


async def test_the_loop_has_ticks_one_after_the_other(receiver: Receiver) -> None:
    ledger = oncekey.open("memory://")
    target = CallUrl(receiver.url, secret=SECRET)
    begun = ledger.clock.now()
    async with Scheduler(ledger, None, [Schedule("often", Every(1000), target, missed="all")]):
        for _ in range(3):
            await asyncio.to_thread(receiver.arrived.acquire)
    ledger.close()
    first = (begun // 1000 + 1) * 1000
    assert receiver.keys[:3] == [f"sched:often:{first + n * 1000}" for n in range(3)]


async def test_the_loop_survives_a_ledger_that_was_closed(
    ledger: Ledger, receiver: Receiver
) -> None:
    async with Scheduler(ledger, None, [calling(receiver)]):
        ledger.close()
