"""Processes that do durable work on Restate are killed: the last of them, and the one that serves
the objects everybody needs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.restate_server import RestateServer
from tests.fixtures.workers import Crew

pytestmark = pytest.mark.restate


@pytest.fixture(scope="module")
def server() -> Iterator[RestateServer]:
    """One that nobody else serves."""
    made = RestateServer()
    made.start()
    yield made
    made.close()


@pytest.fixture
def crew(server: RestateServer, tmp_path: Path) -> Iterator[Crew]:
    made = Crew(server.url(), tmp_path, lease=1.5, heartbeat=0.4)
    yield made
    made.close()


def test_a_step_is_done_again_and_no_finished_one(crew: Crew) -> None:
    first, second = crew.hire(), crew.hire()
    execution = second.ask("start", "steps", ["one", "held", "two"])
    crew.until_marked(execution, "held")
    (busy,) = {mark.pid for mark in crew.marks.all()}
    doomed, heir = (first, second) if busy == first.pid else (second, first)
    doomed.kill()
    crew.until_marked(execution, "held", times=2)
    crew.open("held")
    assert heir.ask("result", execution) == ["one", "held", "two"]
    done = [(each.step, each.what) for each in crew.marks.all()]
    assert done.count(("one", "began")) == done.count(("two", "began")) == 1
    assert done.count(("held", "began")) == 2


def test_a_wait_needs_no_process(crew: Crew) -> None:
    first = crew.hire()
    execution = first.ask("start", "wait", "k")
    first.ask("until", execution, "WAITING")
    first.kill()
    second = crew.hire()
    assert second.ask("resolve", "key:k", 7) == (False, False)
    assert second.ask("result", execution) == 7
    assert [len(each) for each in crew.marks.by_step().values()] == [2, 2]


def test_whoever_comes_after_the_last_one_ends_everything(crew: Crew) -> None:
    """Nobody is there for a while: neither who runs it nor who serves what keeps it."""
    first = crew.hire()
    busy = first.ask("start", "steps", ["one", "held", "two"])
    asleep = first.ask("start", "stubborn", "k")
    crew.until_marked(busy, "held")
    first.ask("until", asleep, "WAITING")
    first.kill()
    crew.open("held")
    second = crew.hire()
    assert second.ask("result", busy) == ["one", "held", "two"]
    second.ask("resolve", "key:k", 1)
    assert second.ask("result", asleep) == 1


def test_work_goes_on_when_restate_was_away(crew: Crew, server: RestateServer) -> None:
    """A step that ends meanwhile is journaled when it is back, and is not done again."""
    worker = crew.hire()
    execution = worker.ask("start", "steps", ["one", "held", "two"])
    waits = worker.ask("start", "wait", "k")
    crew.until_marked(execution, "held")
    worker.ask("until", waits, "WAITING")
    server.kill()
    crew.open("held")
    crew.until_marked(execution, "held", "ended")
    server.start()
    assert worker.ask("result", execution) == ["one", "held", "two"]
    worker.ask("resolve", "key:k", 7)
    assert worker.ask("result", waits) == 7
    assert {len(each) for each in crew.marks.by_step().values()} == {2}
