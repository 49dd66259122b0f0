"""Schedules against the rule of the design: whatever is paused, missed, declared anew or run by two
schedulers at once, each tick has one effect, and the ticks are those that the policy says."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

import oncekey
from oncekey import Ledger
from oncekey.core.errors import InvalidInput, ScheduleInvalid
from oncekey.schedules import CallUrl, Cron, Every, Missed, Schedule, Scheduler
from oncekey.schedules.timing import timing_of
from tests.fixtures.frozen import FrozenClock
from tests.fixtures.fuzzing import fuzz
from tests.fixtures.receiver import SECRET
from tests.fixtures.stores import sqlite_url
from tests.fixtures.ticks import MINUTE, START

GRACE = 60_000
"""For how long a tick is not missed, with the policy `skip`."""


def due(missed: Missed, next_at: int, now: int) -> list[int]:
    """The ticks that are to have their effect now."""
    ticks = list(range(next_at, now + 1, MINUTE))
    match missed:
        case "all":
            return ticks
        case "last":
            return ticks[-1:]
        case "skip":
            return [tick for tick in ticks if tick >= now - GRACE]


class Machine(RuleBasedStateMachine):
    """Two schedulers, and a receiver that counts what comes to it."""

    open: ClassVar[Callable[[FrozenClock], list[Ledger]]]
    names: ClassVar[Iterator[int]]

    @initialize(missed=st.sampled_from(["all", "last", "skip"]))
    def declare(self, missed: Missed) -> None:
        self.runner = asyncio.Runner()
        self.clock = FrozenClock(START)
        self.ledgers = type(self).open(self.clock)
        self.missed: Missed = missed
        self.name = f"s{next(self.names)}"
        self.received: Counter[str] = Counter()
        self.wanted: list[str] = []
        self.next_at, self.paused = START + MINUTE, False
        self.schedulers = [self.run(self.scheduler(each)) for each in self.ledgers]

    def teardown(self) -> None:
        for each in getattr(self, "schedulers", ()):
            self.run(each.close())
        for ledger in getattr(self, "ledgers", ()):
            ledger.close(grace=0)
        if hasattr(self, "runner"):
            self.runner.close()

    def run(self, work: Any) -> Any:
        return self.runner.run(work)

    async def scheduler(self, ledger: Ledger) -> Scheduler:
        def receive(request: httpx.Request) -> httpx.Response:
            self.received[request.headers["idempotency-key"]] += 1
            return httpx.Response(200, stream=httpx.ByteStream(b"done"))

        client = httpx.AsyncClient(transport=httpx.MockTransport(receive))
        target = CallUrl("http://receiver/", secret=SECRET)
        schedule = Schedule(self.name, Every(MINUTE), target, missed=self.missed)
        scheduler = Scheduler(ledger, None, [schedule], client=client)
        await scheduler.declare()
        return scheduler

    def expect(self) -> None:
        now = self.clock.now()
        if self.paused or self.next_at > now:
            return
        self.wanted += [f"sched:{self.name}:{tick}" for tick in due(self.missed, self.next_at, now)]
        self.next_at = now - now % MINUTE + MINUTE

    @rule(seconds=st.sampled_from([1, 20, 59, 60, 61, 150, 600]))
    def pass_time(self, seconds: int) -> None:
        self.clock.advance(seconds * 1000)

    @rule(which=st.integers(0, 1))
    def one_looks(self, which: int) -> None:
        self.run(self.schedulers[which].run_once())
        self.expect()

    @rule()
    def both_look_at_once(self) -> None:
        async def look() -> None:
            await asyncio.gather(*(each.run_once() for each in self.schedulers))
            # Whoever came second may have left a tick to the first, which is done with it by now.
            await asyncio.gather(*(each.run_once() for each in self.schedulers))

        self.run(look())
        self.expect()

    @rule(which=st.integers(0, 1))
    def pause(self, which: int) -> None:
        assert self.run(self.schedulers[which].pause(self.name)).paused
        self.paused = True

    @rule(which=st.integers(0, 1))
    def resume(self, which: int) -> None:
        assert not self.run(self.schedulers[which].resume(self.name)).paused
        if self.paused:
            now = self.clock.now()
            self.paused, self.next_at = False, now - now % MINUTE + MINUTE

    @rule(which=st.integers(0, 1))
    def end_and_begin_anew(self, which: int) -> None:
        """What is declared once more neither forgets a tick nor wakes what is paused."""
        self.run(self.schedulers[which].close())
        self.schedulers[which] = self.run(self.scheduler(self.ledgers[which]))

    @invariant()
    def each_tick_has_had_one_effect(self) -> None:
        assert self.received == Counter(self.wanted)
        assert len(set(self.wanted)) == len(self.wanted)


def check(opened: Callable[[FrozenClock], list[Ledger]], few: int) -> None:
    Machine.open, Machine.names = staticmethod(opened), itertools.count(1)
    run_state_machine_as_test(Machine, settings=fuzz(few, stateful_step_count=20))


def test_two_schedulers_in_memory() -> None:
    def opened(clock: FrozenClock) -> list[Ledger]:
        return [oncekey.open("memory://", clock=clock, sweep_interval=0)] * 2

    check(opened, 15)


def test_two_schedulers_on_one_file(tmp_path: Path) -> None:
    def opened(clock: FrozenClock) -> list[Ledger]:
        url = sqlite_url(tmp_path)
        return [oncekey.open(url, clock=clock, sweep_interval=0) for _ in range(2)]

    check(opened, 4)


fields = st.sampled_from(
    "* */5 0 59 60 1-5 5-1 1,3 L LW MON#1 5L SUN JAN ? @ - , x */0 *-5".split()
)
lines = st.lists(fields, max_size=7).map(" ".join) | st.text(max_size=30)
spellings = st.one_of(
    lines,
    st.text("every 0159msmhdw.-", max_size=12),
    lines.map(lambda line: f"cron {line} UTC"),
    lines.map(lambda line: f"every {line}"),
)


@fuzz(60)
@given(spellings, st.integers(0, 4_000_000_000_000))
def test_a_timing_ticks_on_or_is_refused(text: str, moment: int) -> None:
    try:
        timing = timing_of(text)
    except InvalidInput:
        return
    assert timing.next_after(moment) > moment


@pytest.mark.parametrize(
    "zone", ["UTC", "Europe/Berlin", "America/Sao_Paulo", "nowhere", "../etc", ""]
)
@fuzz(20)
@given(line=lines, moment=st.integers(0, 4_000_000_000_000))
def test_a_cron_line_ticks_on_or_is_refused(zone: str, line: str, moment: int) -> None:
    try:
        timing = Cron(line, zone)
    except ScheduleInvalid:
        return
    first = timing.next_after(moment)
    assert first > moment
    assert timing.next_after(first) > first
