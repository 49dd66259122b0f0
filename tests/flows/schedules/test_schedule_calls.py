"""Ticks posted to a real receiver: keys, signatures, attempts and secrets."""

import pytest

import oncekey
from oncekey import Ledger
from oncekey.schedules import CallUrl, Every, Ran, Schedule
from tests.fixtures.frozen import FrozenClock
from tests.fixtures.receiver import SECRET, Receiver
from tests.fixtures.ticks import MINUTE, START, calling, key, scheduler_of

pytestmark = pytest.mark.anyio


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
