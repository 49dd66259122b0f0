"""Schedules that call a real receiver: keys, signatures, attempts, and what is missed."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

import oncekey
from oncekey import Ledger
from oncekey.core.errors import NotFound
from oncekey.schedules import CallUrl, Every, Missed, Ran, Schedule, Scheduler
from tests.fixtures.frozen import FrozenClock
from tests.fixtures.receiver import SECRET, Receiver

pytestmark = pytest.mark.anyio
MINUTE = 60_000
HOUR = 60 * MINUTE
START = 1_699_999_200_000
"""A whole hour."""


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(START)


@pytest.fixture
def ledger(clock: FrozenClock) -> Iterator[Ledger]:
    opened = oncekey.open("memory://", clock=clock, sweep_interval=0)
    yield opened
    opened.close()


def calling(receiver: Receiver, name: str = "nightly", **options: Any) -> Schedule:
    missed: Missed = options.pop("missed", "last")
    paused, every = options.pop("paused", False), Every(options.pop("every", MINUTE))
    target = CallUrl(receiver.url, **{"secret": SECRET, **options})
    return Schedule(name, every, target, missed=missed, paused=paused)


async def scheduler_of(ledger: Ledger, *schedules: Schedule, **options: Any) -> Scheduler:
    scheduler = Scheduler(ledger, None, schedules, **{"backoff": 0.001, **options})
    await scheduler.declare()
    return scheduler


def key(minute: int, name: str = "nightly") -> str:
    return f"sched:{name}:{START + minute * MINUTE}"


# -- a tick ------------------------------------------------------------------------------------


async def test_a_tick_is_posted_with_its_key_its_signature_and_its_data(
    ledger: Ledger, clock: FrozenClock, receiver: Receiver
) -> None:
    scheduler = await scheduler_of(ledger, calling(receiver, data={"depth": 2}))
    clock.advance(MINUTE + 250)

    assert await scheduler.run_once() == [Ran(key(1), True, "answered 201")]
    await scheduler.close()

    (delivery,) = receiver.deliveries
    tick = START + MINUTE
    assert delivery.body == {"schedule_id": "nightly", "tick": tick, "data": {"depth": 2}}
    assert delivery.headers["content-type"] == "application/json"
    signature = delivery.headers["x-schedule-signature"]
    assert signature.startswith(f"t={tick // 1000},v1=")
    assert delivery.status == 201


async def test_a_tick_is_had_once_and_the_next_one_at_its_time(
    ledger: Ledger, clock: FrozenClock, receiver: Receiver
) -> None:
    scheduler = await scheduler_of(ledger, calling(receiver))
    assert await scheduler.run_once() == []
    for _ in range(3):
        clock.advance(MINUTE // 2)
        await scheduler.run_once()
        await scheduler.run_once()
    await scheduler.close()
    assert receiver.keys == [key(1)]


async def test_the_time_of_a_tick_is_its_own_not_that_of_its_dispatch(
    ledger: Ledger, clock: FrozenClock, receiver: Receiver
) -> None:
    scheduler = await scheduler_of(ledger, calling(receiver))
    clock.advance(MINUTE + 59_999)
    await scheduler.run_once()
    await scheduler.close()
    assert receiver.keys == [key(1)]


async def test_a_schedule_that_is_new_makes_up_for_nothing(
    ledger: Ledger, clock: FrozenClock, receiver: Receiver
) -> None:
    clock.advance(10 * MINUTE + 1)
    scheduler = await scheduler_of(ledger, calling(receiver, missed="all"))
    assert await scheduler.run_once() == []
    await scheduler.close()


# -- attempts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [409, 429, 500, 503, "hang up"])
async def test_what_may_pass_is_tried_again_with_the_same_key_and_body(
    ledger: Ledger, clock: FrozenClock, receiver: Receiver, answer: int | str
) -> None:
    receiver.answers = [answer, answer]
    scheduler = await scheduler_of(ledger, calling(receiver))
    clock.advance(MINUTE)
    assert await scheduler.run_once() == [Ran(key(1), True, "answered 201")]
    await scheduler.close()
    assert receiver.keys == [key(1)] * 3
    assert len({repr(each.body) for each in receiver.deliveries}) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 422])
async def test_what_is_refused_is_not_tried_again(
    ledger: Ledger, clock: FrozenClock, receiver: Receiver, status: int
) -> None:
    receiver.answers = [status]
    scheduler = await scheduler_of(ledger, calling(receiver))
    clock.advance(MINUTE)
    assert await scheduler.run_once() == [Ran(key(1), False, f"answered {status}")]
    assert await scheduler.run_once() == []
    await scheduler.close()
    assert receiver.keys == [key(1)]


async def test_a_redirect_is_not_followed(
    ledger: Ledger, clock: FrozenClock, receiver: Receiver
) -> None:
    receiver.answers = [(302, {"Location": receiver.url})]
    scheduler = await scheduler_of(ledger, calling(receiver))
    clock.advance(MINUTE)
    (ran,) = await scheduler.run_once()
    await scheduler.close()
    assert ran.text == "answered 302, a redirect, which is not followed"
    assert len(receiver.deliveries) == 1


async def test_attempts_end_and_the_tick_has_failed(
    ledger: Ledger, clock: FrozenClock, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answers = [503] * 3
    scheduler = await scheduler_of(ledger, calling(receiver, attempts=3))
    clock.advance(MINUTE)
    assert await scheduler.run_once() == [Ran(key(1), False, "answered 503, 3 times")]
    clock.advance(MINUTE)
    assert await scheduler.run_once() == [Ran(key(2), True, "answered 201")]
    await scheduler.close()
    assert receiver.keys == [key(1)] * 3 + [key(2)]
    assert f"tick {START + MINUTE} failed: answered 503, 3 times" in caplog.text
    assert SECRET not in caplog.text


async def test_nobody_there_is_tried_again_too(
    ledger: Ledger, clock: FrozenClock, free_port: int
) -> None:
    target = CallUrl(f"http://127.0.0.1:{free_port}/", secret=SECRET, attempts=2)
    scheduler = await scheduler_of(ledger, Schedule("nightly", Every(MINUTE), target))
    clock.advance(MINUTE)
    assert await scheduler.run_once() == [Ran(key(1), False, "not reached: ConnectError, 2 times")]
    await scheduler.close()


async def test_an_answer_is_not_waited_for_forever(
    ledger: Ledger, clock: FrozenClock, receiver: Receiver
) -> None:
    receiver.gate.clear()
    scheduler = await scheduler_of(ledger, calling(receiver, timeout=0.05, attempts=1))
    clock.advance(MINUTE)
    (ran,) = await scheduler.run_once()
    receiver.gate.set()
    await scheduler.close()
    assert ran == Ran(key(1), False, "no answer within 0.05 s, 1 times")


async def test_each_attempt_is_signed_at_its_own_time(
    ledger: Ledger, clock: FrozenClock, receiver: Receiver
) -> None:
    class Ticking(FrozenClock):
        def now(self) -> int:
            self.advance(1000)
            return super().now()

    receiver.answers = [500]
    moving = oncekey.open("memory://", clock=Ticking(START), sweep_interval=0)
    scheduler = await scheduler_of(moving, calling(receiver))
    await scheduler.run_once(START + MINUTE)
    await scheduler.close()
    moving.close()
    first, second = (each.headers["x-schedule-signature"] for each in receiver.deliveries)
    assert first.partition(",")[0] != second.partition(",")[0]


# -- secrets -----------------------------------------------------------------------------------


async def test_a_secret_may_come_from_the_environment(
    ledger: Ledger, clock: FrozenClock, receiver: Receiver
) -> None:
    schedule = calling(receiver, secret=None, secret_env="SHOP_SECRET")
    scheduler = await scheduler_of(ledger, schedule, environ={"SHOP_SECRET": SECRET})
    clock.advance(MINUTE)
    (ran,) = await scheduler.run_once()
    await scheduler.close()
    assert ran.ok


async def test_without_its_secret_a_tick_waits_for_somebody_who_has_it(
    ledger: Ledger, clock: FrozenClock, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    knowing = await scheduler_of(ledger, calling(receiver))
    ignorant = await scheduler_of(ledger)
    clock.advance(MINUTE)
    assert await ignorant.run_once() == []
    assert "has no secret of its own for it, and nothing is sent unsigned" in caplog.text
    assert receiver.deliveries == []
    assert await knowing.run_once() == [Ran(key(1), True, "answered 201")]
    await knowing.close()
    await ignorant.close()


async def test_a_secret_too_short_to_sign_with_is_not_used(
    ledger: Ledger, clock: FrozenClock, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    schedule = calling(receiver, secret=None, secret_env="SHOP_SECRET")
    scheduler = await scheduler_of(ledger, schedule, environ={"SHOP_SECRET": "hunter2"})
    clock.advance(MINUTE)
    assert await scheduler.run_once() == []
    await scheduler.close()
    assert "at least 16 characters" in caplog.text
    assert "hunter2" not in caplog.text
    assert receiver.deliveries == []


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
