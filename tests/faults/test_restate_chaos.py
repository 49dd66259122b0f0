"""Nodes of a Restate cluster, edges and workers die in the middle of traffic with duplicates: every
key has one answer, every finished step one effect, and nobody waits past his time."""

import os
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.fixtures.processes import Start
from tests.fixtures.restate_chaos import (
    Battlefield,
    Load,
    check_nothing_is_stuck,
    check_orders,
    telling,
)
from tests.fixtures.restate_edge import RestateEdges
from tests.fixtures.restate_server import RestateCluster, RestateServer
from tests.fixtures.storm import Fleet, call, check

pytestmark = [pytest.mark.restate, pytest.mark.timeout(300)]

# Kills, unless the environment says how many: minutes of them.
KILLS = int(os.environ.get("CHAOS_KILLS", "60"))
JOBS_AT_ONCE = 20

Act = Callable[[], None]


class War:
    """Edges, a worker and a client on one cluster, and what is done to them."""

    def __init__(
        self, start: Start, edges: RestateEdges, folder: Path, dice: random.Random, away: float
    ) -> None:
        self._folder = folder
        self.url = edges.server.url(space=edges.space)
        self.field = Battlefield(edges, dice, away)
        self.fleet = Fleet(self.url, folder, 1, dice, lease=3.0, heartbeat=0.75)
        self._client = start(call, self.url, folder, dice.randrange(100), None, JOBS_AT_ONCE)
        self._load = Load(self.field.gates, dice.randrange(100))

    @property
    def kinds(self) -> list[Act]:
        field = self.field
        return [field.kill_node, field.kill_edge, field.killing("worker", self.fleet.kill)]

    def wage(self, acts: list[Act]) -> None:
        with telling(self.field.cluster.nodes[0].admin):
            with self._load.running():
                for act in acts:
                    act()
            self._client.tell("stop")
            count, wrong = self._client.hear()
        assert wrong == []
        assert count > len(acts)
        assert len(self._load.answers) > len(acts)

    def check(self) -> None:
        check_orders(self._load, self.field)
        check(self.url, self._folder)
        check_nothing_is_stuck(self.field.cluster.nodes[0].admin)

    def close(self) -> None:
        self.fleet.close()


MakeWar = Callable[..., War]


@pytest.fixture
def war_on(start: Start, tmp_path: Path) -> Iterator[MakeWar]:
    with ExitStack() as ends:

        def make(cluster: RestateCluster, dice: random.Random, away: float = 2.0) -> War:
            cluster.start()
            edges = RestateEdges(cluster, tmp_path, ends)
            war = War(start, edges, tmp_path, dice, away)
            ends.callback(war.close)
            return war

        yield make


@pytest.fixture
def dice() -> random.Random:
    seed = int(os.environ.get("CHAOS_SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"CHAOS_SEED={seed}")  # noqa: T201 - shown with a failure, to have it again
    return random.Random(seed)


def test_one_death_of_each_kind(war_on: MakeWar, restate_cluster: RestateCluster) -> None:
    war = war_on(restate_cluster, random.Random(5))
    war.wage(war.kinds)
    war.check()


def test_the_only_node_dies_a_few_times(war_on: MakeWar, bare_restate: RestateServer) -> None:
    """No process of ours does: then nothing is begun twice at all."""
    war = war_on(bare_restate, random.Random(7), away=0.2)
    war.wage([war.field.kill_node] * 6)
    war.check()


@pytest.mark.storm
@pytest.mark.timeout(3600)
def test_deaths_for_minutes(
    war_on: MakeWar, restate_cluster: RestateCluster, dice: random.Random
) -> None:
    war = war_on(restate_cluster, dice)
    war.wage([dice.choice(war.kinds) for _ in range(KILLS)])
    war.check()


@pytest.mark.storm
@pytest.mark.timeout(3600)
def test_the_only_node_dies_all_the_time(
    war_on: MakeWar, bare_restate: RestateServer, dice: random.Random
) -> None:
    war = war_on(bare_restate, dice, away=0.2)
    war.wage([war.field.kill_node] * KILLS * 3)
    war.check()
