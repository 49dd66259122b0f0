"""Hundreds of kills under load: every key keeps its promise. Run by `make storm`."""

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fixtures.chaos import Load, Row, check
from tests.fixtures.postgres_server import PostgresServer
from tests.fixtures.restate_server import RestateServer
from tests.fixtures.street import Street

pytestmark = [pytest.mark.storm, pytest.mark.timeout(1800)]

SERVERS, CALLERS = 3, 6
PATHS = ("/rerun", "/refuse", "/recover", "/within")
# Where there are no transactions of the application.
PATHS_ALONE = PATHS[:-1]
# Seconds an order takes: long enough that whoever is killed or stopped has some in its hands.
PACE = 0.03
# Kills, unless the environment says how many.
KILLS = int(os.environ.get("CHAOS_KILLS", "300"))

Act = Callable[[], None]


@pytest.fixture
def dice() -> random.Random:
    seed = int(os.environ.get("CHAOS_SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"CHAOS_SEED={seed}")  # noqa: T201 - shown with a failure, to have it again
    return random.Random(seed)


@pytest.fixture
def street(tmp_path: Path) -> Iterator[Street]:
    """Shops on SQLite; claims lapse with their process, and soon when it stands still."""
    made = Street(f"sqlite:///{tmp_path}/oncekey.db", tmp_path, lease=0.6, pace=PACE)
    yield made
    made.close()


@pytest.fixture
def postgres_street(tmp_path: Path, postgres_url: str) -> Iterator[Street]:
    made = Street(postgres_url, tmp_path, lease=0.6, pace=PACE)
    yield made
    made.close()


@pytest.fixture
def restate_street(tmp_path: Path, restate_url: str) -> Iterator[Street]:
    made = Street(restate_url, tmp_path, lease=1.0, heartbeat=0.25, pace=PACE)
    yield made
    made.close()


def run(street: Street, dice: random.Random, acts: list[Act], load: Load, kills: int) -> None:
    def chaos() -> None:
        for _ in range(kills):
            dice.choice(acts)()

    load.run_during(chaos, CALLERS)
    assert len(load.answers) > kills


def test_kills_on_sqlite(street: Street, dice: random.Random) -> None:
    row = Row(street, SERVERS, dice)
    load = Load(row, PATHS, dice)
    run(street, dice, [row.kill, row.kill_at_a_point], load, KILLS)
    check(street, load)


def test_kills_and_stops_on_sqlite(street: Street, dice: random.Random) -> None:
    row = Row(street, SERVERS, dice)
    load = Load(row, PATHS, dice)
    run(street, dice, [row.kill, row.kill_at_a_point, row.stop_for_a_while], load, KILLS // 3)
    check(street, load, stopped=True)


@pytest.mark.postgres
def test_kills_on_postgres(postgres_street: Street, dice: random.Random) -> None:
    row = Row(postgres_street, SERVERS, dice)
    load = Load(row, PATHS, dice)
    run(postgres_street, dice, [row.kill, row.kill_at_a_point], load, KILLS // 3)
    check(postgres_street, load)


@pytest.mark.postgres
def test_kills_and_crashes_of_postgres_itself(
    postgres_street: Street, postgres: PostgresServer, dice: random.Random
) -> None:
    row = Row(postgres_street, SERVERS, dice)
    load = Load(row, PATHS, dice)
    acts: list[Act] = [row.kill, row.kill_at_a_point, row.stop_for_a_while, postgres.restart]
    run(postgres_street, dice, acts, load, KILLS // 6)
    check(postgres_street, load, stopped=True, outages=True)


@pytest.mark.restate
def test_kills_on_restate(restate_street: Street, dice: random.Random) -> None:
    row = Row(restate_street, SERVERS, dice)
    load = Load(row, PATHS_ALONE, dice)
    run(restate_street, dice, [row.kill, row.kill_at_a_point], load, KILLS // 6)
    check(restate_street, load)


@pytest.mark.restate
def test_kills_and_crashes_of_restate_itself(
    restate_street: Street, restate: RestateServer, dice: random.Random
) -> None:
    row = Row(restate_street, SERVERS, dice)
    load = Load(row, PATHS_ALONE, dice)
    acts: list[Act] = [row.kill, row.kill_at_a_point, row.stop_for_a_while, restate.restart]
    run(restate_street, dice, acts, load, KILLS // 10)
    check(restate_street, load, stopped=True, outages=True)
