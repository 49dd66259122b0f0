"""The log of deliveries: written without waiting, bounded whatever comes in."""

import asyncio
from collections.abc import AsyncIterator
from typing import get_args

import pytest

import oncekey
from oncekey.core.deliveries import Deliveries, KeepDeliveries, Verdict
from oncekey.core.ledger import Ledger
from oncekey.core.ports import Waiter
from tests.fixtures.frozen import FrozenClock

pytestmark = pytest.mark.anyio

ONE, OTHER = f"wh_{'a' * 30}", f"wh_{'b' * 30}"
DAY = 86_400_000
UNBOUNDED = {"accepted", "failed"}


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
async def ledger(clock: FrozenClock) -> AsyncIterator[Ledger]:
    opened = oncekey.open("memory://", clock=clock)
    yield opened
    await opened.aclose()


async def test_a_line_has_all_that_is_told_of_it(ledger: Ledger, clock: FrozenClock) -> None:
    log = Deliveries(ledger)
    log.record(ONE, "accepted", identifier="evt_1", reason="paid", operation=7, size=12)

    (line,) = await log.list(ONE)
    assert line[1:] == (
        ONE, clock.now(), "accepted", "evt_1", "paid", 7, 12, 1, clock.now() + 7 * DAY,
    )  # fmt: skip
    assert await log.list(OTHER) == []
    assert await log.list("wh_\0") == []


async def test_the_newest_comes_first_and_pages_follow(ledger: Ledger) -> None:
    log = Deliveries(ledger)
    for number in range(5):
        log.record(ONE, "accepted", identifier=f"evt_{number}")

    page = await log.list(ONE, limit=3)
    rest = await log.list(ONE, before=page[-1].id)
    assert [each.identifier for each in [*page, *rest]] == [f"evt_{n}" for n in (4, 3, 2, 1, 0)]


async def test_the_retention_of_webhooks_says_how_long_a_line_is_kept(
    ledger: Ledger, clock: FrozenClock
) -> None:
    ledger.set_retention("webhook", 60.0)
    log = Deliveries(ledger)
    log.record(ONE, "accepted")
    log.flush()

    clock.advance(59_999)
    assert ledger.sweep() == 0
    clock.advance(1)
    assert ledger.sweep() == 1
    assert await log.list(ONE) == []


@pytest.mark.parametrize("verdict", get_args(Verdict))
async def test_a_flood_is_so_many_lines_and_one_for_the_rest(
    ledger: Ledger, clock: FrozenClock, verdict: Verdict
) -> None:
    log = Deliveries(ledger, most_a_minute=10)
    for _ in range(100):
        log.record(ONE, verdict, reason="not signed")
    log.record(OTHER, verdict)
    clock.advance(60_000)
    log.record(ONE, verdict)

    lines = await log.list(ONE, limit=1000)
    assert sum(each.times for each in lines) == 101
    assert len(lines) == (101 if verdict in UNBOUNDED else 12)
    assert len(await log.list(OTHER)) == 1
    if verdict not in UNBOUNDED:
        assert lines[1].times == 90
        assert lines[1].reason == "90 more within a minute"


async def test_a_flood_of_one_verdict_hides_no_other(ledger: Ledger) -> None:
    log = Deliveries(ledger, most_a_minute=1)
    for _ in range(5):
        log.record(ONE, "refused")
    log.record(ONE, "replayed", identifier="evt_1")

    assert [each.verdict for each in await log.list(ONE)] == ["replayed", "refused"]


async def test_what_a_flood_came_to_is_told_at_the_end(ledger: Ledger) -> None:
    log = Deliveries(ledger, most_a_minute=1)
    for _ in range(5):
        log.record(ONE, "refused")
    log.flush()

    assert [each.times for each in await log.list(ONE)] == [4, 1]


async def test_floods_of_very_many_webhooks_are_bounded_too(ledger: Ledger) -> None:
    log = Deliveries(ledger, most_a_minute=1)
    for number in range(5000):
        log.record(f"wh_{number:030}", "refused")
        log.record(f"wh_{number:030}", "refused")

    assert [each.times for each in await log.list(f"wh_{0:030}")] == [1, 1]


async def test_text_from_outside_is_cut_and_cannot_act(ledger: Ledger) -> None:
    log = Deliveries(ledger)
    log.record(ONE, "refused", identifier="a\0\x1b[31m\ud800", reason="x" * 9999)

    (line,) = await log.list(ONE)
    assert line.identifier == "a\ufffd\ufffd[31m\ufffd"
    assert len(line.reason) == 300


async def test_lines_that_follow_closely_are_written_together(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups: list[int] = []
    submit = ledger.store.submit

    def watched(request: object, waiter: Waiter) -> None:
        if isinstance(request, KeepDeliveries):
            groups.append(len(request.deliveries))
        submit(request, waiter)

    monkeypatch.setattr(ledger.store, "submit", watched)
    log = Deliveries(ledger, gather=3600.0)
    for _ in range(100):
        log.record(ONE, "accepted")
    log.flush()

    assert groups == [1, 99]


def test_without_a_loop_each_line_is_written_at_once() -> None:
    ledger = oncekey.open("memory://")
    log = Deliveries(ledger)
    log.record(ONE, "accepted")
    log.record(ONE, "accepted")

    assert len(asyncio.run(log.list(ONE))) == 2
    ledger.close()


async def test_a_log_that_outlives_its_ledger_fails_nobody(ledger: Ledger) -> None:
    log = Deliveries(ledger)
    await ledger.aclose()
    log.record(ONE, "accepted")
    log.flush()
