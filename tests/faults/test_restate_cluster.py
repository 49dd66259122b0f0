"""The three nodes of Restate that the other tests lean on keep their word."""

import threading
from collections.abc import Iterator

import pytest

from tests.fixtures.restate_counter import added, served_counter
from tests.fixtures.restate_server import RestateCluster, new_space

pytestmark = pytest.mark.restate

# Enough that each partition has some.
NAMES = 12


@pytest.fixture
def cluster(restate_cluster: RestateCluster) -> Iterator[RestateCluster]:
    restate_cluster.start()
    with served_counter(restate_cluster.nodes[0].admin):
        yield restate_cluster


def test_any_node_answers_for_all(cluster: RestateCluster) -> None:
    for _ in range(NAMES):
        name = new_space()
        assert [added(node.ingress, name) for node in cluster.nodes] == [1, 2, 3]


def test_two_nodes_carry_on_with_everything(cluster: RestateCluster) -> None:
    dead, *left = cluster.nodes
    names = [new_space() for _ in range(NAMES)]
    for name in names:
        assert added(dead.ingress, name) == 1

    dead.kill()
    cluster.wait_ready()

    for name in names:
        assert [added(node.ingress, name) for node in left] == [2, 3]


def test_a_node_that_comes_back_knows_what_it_missed(cluster: RestateCluster) -> None:
    first, second, third = cluster.nodes
    name = new_space()
    assert added(third.ingress, name) == 1
    third.kill()
    cluster.wait_ready()
    assert added(first.ingress, name) == 2
    third.start()
    cluster.wait_ready()
    second.stop()
    cluster.wait_ready()
    assert added(third.ingress, name) == 3


def test_what_one_node_alone_is_asked_is_done_once_there_are_two(cluster: RestateCluster) -> None:
    first, second, third = cluster.nodes
    name = new_space()
    assert added(first.ingress, name) == 1
    second.kill()
    third.kill()
    totals: list[int] = []
    waiting = threading.Thread(target=lambda: totals.append(added(first.ingress, name)))
    waiting.start()
    third.start()
    waiting.join()
    assert totals == [2]


def test_its_url_names_every_node(cluster: RestateCluster) -> None:
    url = cluster.url(space="shop")
    for node in cluster.nodes:
        assert node.addresses["ingress"] in url
        assert node.addresses["admin"] in url
