"""The same durable work in every store, side by side: all answer as the oracle does."""

from collections.abc import Callable
from pathlib import Path

import pytest

from oncekey.core.answers import Ripe
from oncekey.core.execution import Execution, PromiseKind, Status
from oncekey.core.work import Await, Due, Start
from tests.fixtures.frozen import FrozenClock
from tests.fixtures.postgres_schema import new_schema
from tests.fixtures.postgres_server import PostgresServer
from tests.fixtures.quiet import opened
from tests.fixtures.restate_server import RestateServer
from tests.fixtures.stores import Place, sqlite_url
from tests.fixtures.walk import Walk
from tests.fixtures.work import LATE, OVERDUE, Worker


def walk(urls: list[str], seed: int, steps: int = 300) -> None:
    clock = FrozenClock()
    places = [Place(url) for url in urls]
    try:
        for place in places:
            place.clock = clock
        Walk([Worker(place.open()) for place in places], clock, seed).run(steps)
    finally:
        for place in places:
            place.close()


@pytest.mark.postgres
@pytest.mark.parametrize("seed", range(6))
def test_all_stores_answer_alike(postgres: PostgresServer, tmp_path: Path, seed: int) -> None:
    walk(["memory://", sqlite_url(tmp_path), new_schema(postgres.url())], seed)


class RestateWalk(Walk):
    """Without what is another thing on Restate: a number is one of its object's, events end by the
    clock on the wall, and what is due is found object by object."""

    def verbs(self) -> dict[Callable[[], None], int]:
        left_out = {
            self.start_with_a_number_in_use,
            self.wait_with_a_number_in_use,
            self.publish,
            self.match,
        }
        return {verb: weight for verb, weight in super().verbs().items() if verb not in left_out}

    def starting(self, worker: Worker, name: str, key: str | None, status: Status) -> Start:
        start = super().starting(worker, name, key, status)
        return start._replace(execution=start.execution._replace(due_at=None))

    def awaiting(self, execution: Execution, kind: PromiseKind, key: str | None) -> Await:
        """With a name of its own: when that is taken, its key is not looked at."""
        asked = super().awaiting(execution, kind, key)
        name = asked.promise.name if asked.insert is None else f"p-{asked.promise.id}"
        return asked._replace(promise=asked.promise._replace(name=name))

    def pass_time(self) -> None:
        self.clock.advance(self.random.choice([0, 1, 5, 30]))
        due = Due(self.now, LATE, OVERDUE, 10_000)
        ripe = [worker.ask(due) for worker in self.workers]
        self.compare(due, [_in_order(each) for each in ripe])


def _in_order(ripe: Ripe) -> Ripe:
    return ripe._replace(woken=sorted(ripe.woken, key=lambda woken: woken.promise))


@pytest.mark.restate
@pytest.mark.parametrize("seed", range(2))
def test_restate_answers_as_the_oracle_does(
    patient: None, bare_restate: RestateServer, seed: int
) -> None:
    memory, restate = Place("memory://"), Place(bare_restate.url())
    try:
        worker = Worker(opened(restate))
        memory.clock = restate.clock
        RestateWalk([Worker(memory.open()), worker], restate.clock, seed).run(150)
    finally:
        memory.close()
        restate.close()
