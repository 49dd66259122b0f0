"""Two of three nodes are gone: Restate itself would let everybody wait for ever."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.fixtures.caller import Answer
from tests.fixtures.restate_chaos import Gate, Load, Order, effects_by_key
from tests.fixtures.restate_edge import ATTACHING, ORDERS, Asking, RestateEdges
from tests.fixtures.restate_server import RestateCluster

pytestmark = [pytest.mark.restate, pytest.mark.timeout(300)]

NEW = [Order((ORDERS, ATTACHING)[number % 2], f"k{number}") for number in range(8)]
BEFORE, RUNNING = Order(ORDERS, "before"), Order(ATTACHING, "running")
TOLD = {(503, "ledger-unavailable"), (409, "request-in-progress")}


@pytest.fixture
def edges(restate_cluster: RestateCluster, tmp_path: Path) -> Iterator[RestateEdges]:
    restate_cluster.start()
    with ExitStack() as ends:
        yield RestateEdges(restate_cluster, tmp_path, ends)


def asked(load: Load, orders: list[Order]) -> list[Answer]:
    """All at the same time; whoever gets no answer before his own deadline raises."""

    async def ask() -> list[Answer | None]:
        return await asyncio.gather(*(load.ask(order) for order in orders))

    answers = asyncio.run(ask())
    assert None not in answers
    return [answer for answer in answers if answer]


def answered(load: Load, order: Order) -> Answer:
    """Asked until there is an answer for good."""
    return asyncio.run(load.insist(order))


def test_everybody_is_told_in_time_and_nothing_runs_twice(
    edges: RestateEdges, restate_cluster: RestateCluster
) -> None:
    load = Load([Gate(name, edges, timeout="2s") for name in ("one", "two")], seed=1)
    before = answered(load, BEFORE)
    running = Asking(load.gates[0].site, RUNNING.key, RUNNING.path, sleep=1.5)
    running.let_go()
    for node in restate_cluster.nodes[:2]:
        node.kill()

    # Each of them twice, at either edge.
    answers = asked(load, [*NEW, BEFORE, RUNNING, *NEW, BEFORE, RUNNING])

    for answer in answers:
        assert (answer.status, answer.problem) in TOLD, answer
        assert answer.header("retry-after")
    assert running.answer().status_code in {201, 409, 503}

    restate_cluster.start()
    for order in (*NEW, RUNNING):
        first, again = answered(load, order), answered(load, order)
        assert (first.status, again.status, again.replayed) == (201, 201, True)
        assert first.body == again.body
    kept = answered(load, BEFORE)
    assert (kept.body, kept.replayed) == (before.body, True)
    found = effects_by_key(edges)
    assert {key: len(begun) for key, begun in found.items()} == {
        order.key: 1 for order in (*NEW, BEFORE, RUNNING)
    }
