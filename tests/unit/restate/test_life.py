"""How late it is among the processes on a cluster, as each of them tells the others."""

import asyncio
from typing import Any

from oncekey.stores.restate.life import Life
from oncekey.stores.restate.owners import Owners

LEASE, BEAT = 15_000, 5_000


class Cluster:
    """Stands for Restate: calls take their time on the way there, and on the way back."""

    def __init__(self) -> None:
        self.owners = Owners()
        self.time = 0
        self.owner = 0
        self.there = self.back = 0

    def steady(self) -> int:
        return self.time

    async def call(self, _: str, __: str, handler: str, value: Any) -> Any:
        if handler == "silences":
            return self.owners.silences()
        self.time += self.there
        self.owners.hear(*value)
        self.time += self.back
        return self.owners.latest, {}


def a_life(on: Cluster) -> Life:
    return Life(on, LEASE, BEAT, on.steady)  # type: ignore[arg-type]


def test_time_goes_on_with_the_signs_of_life_of_one() -> None:
    async def live() -> int:
        on = Cluster()
        life = a_life(on)
        await life.begin()
        for _ in range(10):
            on.time += BEAT
            await life.beat()
        return on.owners.latest

    assert asyncio.run(live()) == 10 * BEAT


def test_calls_that_take_long_do_not_make_time_run() -> None:
    """Each of two hears how late it is from the other one, and neither is ahead by that."""

    async def live() -> tuple[int, int]:
        on = Cluster()
        on.there, on.back = 1_900, 400
        lives = [a_life(on), a_life(on)]
        for life in lives:
            await life.begin()
        for _ in range(20):
            for life in lives:
                on.time += BEAT // 2
                await life.beat()
        return on.owners.latest, on.time

    latest, passed = asyncio.run(live())
    assert passed - 10_000 < latest <= passed


def test_who_is_dead_falls_silent_and_who_was_born_late_judges_it() -> None:
    async def live() -> tuple[bool, bool]:
        on = Cluster()
        dead, alive = a_life(on), a_life(on)
        await dead.begin()
        number = on.owner
        on.time += 1_000
        await alive.begin()
        before = await alive.is_gone(number)
        for _ in range(4):
            on.time += BEAT
            await alive.beat()
        return before, await alive.is_gone(number)

    assert asyncio.run(live()) == (False, True)
