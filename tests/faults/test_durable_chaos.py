"""Thousands of workflows under a hail of kills: each ends once. Run by `make storm`."""

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fixtures.postgres_server import PostgresServer
from tests.fixtures.processes import Start
from tests.fixtures.storm import Fleet, call, check, rage

pytestmark = [pytest.mark.storm, pytest.mark.timeout(900)]

# Kills, unless the environment says how many: a minute of them.
KILLS = int(os.environ.get("CHAOS_KILLS", "120"))
PAUSE = 0.8

Act = Callable[[], None]


@pytest.fixture
def dice() -> random.Random:
    seed = int(os.environ.get("CHAOS_SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"CHAOS_SEED={seed}")  # noqa: T201 - shown with a failure, to have it again
    return random.Random(seed)


class Weather:
    """Where it storms: a fleet of so many workers on a store, and a client that lives."""

    def __init__(self, start: Start, url: str, folder: Path, dice: random.Random) -> None:
        self._start, self._url, self._folder, self._dice = start, url, folder, dice

    def rage(self, size: int, acts: list[str], kills: int, *others: Act) -> None:
        fleet = Fleet(self._url, self._folder, size, self._dice, lease=0.6, heartbeat=0.15)
        try:
            # A call through Restate takes longer than a commit.
            at_once = 20 if self._url.startswith("restate") else 150
            seed = self._dice.randrange(100)
            client = self._start(call, self._url, self._folder, seed, None, at_once)
            deeds = [*(getattr(fleet, act) for act in acts), *others]
            count, wrong = rage(fleet, client, deeds, self._dice, kills=kills, pause=PAUSE)
        finally:
            fleet.close()
        assert wrong == []
        assert count > kills
        check(self._url, self._folder, strict=acts == ["kill"] and not others)


@pytest.fixture
def weather(start: Start, url: str, tmp_path: Path, dice: random.Random) -> Weather:
    return Weather(start, url, tmp_path, dice)


def test_kills(weather: Weather, url: str) -> None:
    weather.rage(2 if url.startswith("sqlite") else 3, ["kill"], KILLS)


def test_kills_of_the_only_process(weather: Weather) -> None:
    weather.rage(1, ["kill"], KILLS // 2)


def test_kills_and_stops(weather: Weather) -> None:
    weather.rage(3, ["kill", "stop_for_a_while"], KILLS // 3)


@pytest.mark.postgres
def test_crashes_of_postgres_itself(
    start: Start, postgres_url: str, postgres: PostgresServer, tmp_path: Path, dice: random.Random
) -> None:
    weather = Weather(start, postgres_url, tmp_path, dice)
    weather.rage(3, ["kill"], KILLS // 6, postgres.restart)
