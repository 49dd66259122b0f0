"""Executions for whoever knows their code: taken by one process, and taken on when it is gone."""

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from oncekey.core.answers import Advanced, Lost, Picked
from oncekey.core.execution import Sort, Status
from oncekey.core.work import HandBack, Lives, PickUp
from oncekey.stores.plans import carry_out
from tests.fixtures.stores import Place, until
from tests.fixtures.work import Worker, entry, succeeded

ROOT = Path(__file__).parents[3]
RUN = """
import sys
from oncekey.compose.ledger import store_of
from tests.fixtures.frozen import FrozenClock
from tests.fixtures.stores import Caller
from tests.fixtures.work import Worker
clock = FrozenClock()
store = store_of(sys.argv[1], clock, lease=0.5, heartbeat=0.1)
store.open(lambda _: 0)
execution = Worker(Caller(store, clock, [clock.now() << 20])).start()
print(execution.id, flush=True)
input()
"""


def ids(picked: list[Picked]) -> list[int]:
    return [each.execution.id for each in picked]


def test_what_is_ready_is_picked_up_by_name_oldest_first(worker: Worker) -> None:
    ready = [worker.start(status=Status.READY) for _ in range(3)]
    worker.start("other", status=Status.READY)
    worker.start(sort=Sort.TASK, status=Status.READY)
    worker.start()

    first = worker.pick_up(limit=2)
    second = worker.pick_up(limit=2)

    assert sorted(ids(first)) == [each.id for each in ready[:2]]
    assert ids(second) == [ready[2].id]
    assert worker.pick_up() == []


def test_several_names_are_picked_up_at_once(worker: Worker) -> None:
    workflow = worker.start("a", status=Status.READY)
    task = worker.start("b", sort=Sort.TASK, status=Status.READY)
    worker.start("b", status=Status.READY)
    names = ((Sort.WORKFLOW, "a"), (Sort.TASK, "b"))

    picked = worker.ask(PickUp(names, 10, worker.clock.now()))

    assert sorted(ids(picked)) == [workflow.id, task.id]


def test_what_is_picked_up_is_the_askers_with_all_it_needs(worker: Worker) -> None:
    execution = worker.start(key="k")
    worker.wait(execution, 1, advance=worker.advancing(execution, entry(0)))
    worker.ask(HandBack(((execution.id, 1),)))

    (picked,) = worker.pick_up()

    assert picked.execution == execution._replace(fence=2)
    assert picked.entries == [entry(0)]
    assert [promise.name for promise in picked.promises] == ["payment"]
    assert worker.execution(execution.id) == picked.execution


def test_just_one_can_be_asked_for(worker: Worker) -> None:
    ready = [worker.start(status=Status.READY) for _ in range(3)]

    assert ids(worker.pick_up(only=ready[1].id)) == [ready[1].id]
    assert worker.pick_up("other", only=ready[0].id) == []
    assert worker.pick_up(only=ready[1].id) == []


def test_what_waits_pauses_or_is_over_is_left(worker: Worker) -> None:
    waiting, over = worker.start(), worker.start()
    worker.advance(waiting, waits=0)
    worker.advance(over, ending=succeeded(plain=True))
    worker.start(status=Status.PAUSED)

    assert worker.pick_up() == []


def test_what_is_handed_back_is_for_anybody(worker: Worker) -> None:
    mine, lost = worker.start(), worker.start()

    assert worker.ask(HandBack(((mine.id, 1), (lost.id, 9)))) == 1

    found = worker.execution(mine.id)
    assert (found.status, found.owner) == (Status.READY, 0)
    assert worker.execution(lost.id) == lost
    assert worker.advance(mine, entry(0)) == Lost()
    assert ids(worker.pick_up()) == [mine.id]


# -- several processes -----------------------------------------------------------------------------


def test_what_runs_elsewhere_is_left_there(first: Worker, second: Worker) -> None:
    execution = first.start()

    assert second.pick_up() == []
    assert second.pick_up(only=execution.id) == []
    assert first.pick_up() == []
    assert first.advance(execution, entry(0)) == Advanced()


def test_what_a_process_left_behind_is_picked_up(first: Worker, second: Worker) -> None:
    execution = first.start()
    first.advance(execution, entry(0))
    first.caller.store.close()

    (picked,) = second.pick_up()

    assert picked.execution == execution._replace(fence=2, owner=second.caller.store.owner)
    assert picked.entries == [entry(0)]
    assert second.advance(execution, entry(1)) == Lost()
    assert second.advance(picked.execution, entry(1)) == Advanced()


def test_others_know_whether_a_process_is_alive(first: Worker, second: Worker) -> None:
    owner = first.execution(first.start().id).owner

    assert first.ask(Lives(owner)) is True
    assert second.ask(Lives(owner)) is True
    first.caller.store.close()
    assert second.ask(Lives(owner)) is False
    assert second.ask(Lives(987_654_321)) is False


def test_what_an_owner_nobody_knows_left_behind_is_picked_up(database: Place) -> None:
    first, second = Worker(database.open()), Worker(database.open())
    execution = first.start()
    dead = first.caller.store.owner
    database.execute(f"DELETE FROM oncekey_owners WHERE id = {dead}")

    assert ids(second.pick_up()) == [execution.id]


def test_what_a_killed_process_ran_is_picked_up(shared: Place) -> None:
    worker = Worker(shared.open(lease=0.5, heartbeat=0.1))
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, shared.url],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    number = int(process.stdout.readline())
    assert worker.execution(number).status is Status.RUNNING

    process.send_signal(signal.SIGKILL)
    process.communicate()

    assert ids(until(worker.pick_up)) == [number]


def test_a_process_that_comes_meanwhile_is_not_robbed(database: Place) -> None:
    """Who is gone is found out before; what a process runs that nobody knew of then is its own."""
    first = Worker(database.open())
    request = PickUp(((Sort.WORKFLOW, "order"),), 10, first.clock.now())
    store = first.caller.store
    steps = carry_out(request, store.setting())
    name, values = next(steps)
    assert name == "owners"
    owners = store.transact(lambda run: run(name, values), write=False)

    newcomer = Worker(database.open())
    execution = newcomer.start()

    name, values = steps.send(owners)
    assert name == "pick_up"
    assert store.transact(lambda run: run(name, values), write=True) == []
    assert newcomer.advance(execution, entry(0)) == Advanced()


def test_many_processes_pick_each_up_once(shared: Place) -> None:
    workers = [Worker(shared.open()) for _ in range(4)]
    ready = [workers[0].start(status=Status.READY) for _ in range(60)]

    def take(worker: Worker) -> list[int]:
        taken: list[int] = []
        while picked := worker.pick_up(limit=4):
            taken += ids(picked)
        return taken

    with ThreadPoolExecutor() as threads:
        taken = list(threads.map(take, workers))

    assert sorted(number for each in taken for number in each) == [each.id for each in ready]
