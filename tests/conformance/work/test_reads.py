"""What is read of durable work: one, or a page, of one tenant or of all."""

import itertools

import pytest

from oncekey.compose.ledger import store_of
from oncekey.core.execution import PromiseKind, PromiseState, Sort, Status
from oncekey.core.model import State
from oncekey.core.ports import Query
from oncekey.core.work import FindExecution, ListExecutions, ListPromises, ReadJournal
from tests.fixtures.stores import Caller, Place
from tests.fixtures.work import PAUSED, Worker, entry, succeeded


def test_an_execution_is_found_by_its_tenant(worker: Worker) -> None:
    due_at = worker.clock.now() + 5
    execution = worker.start("order", "k", input=b'{"a":1}', due_at=due_at, frees_key=True)
    assert worker.ask(FindExecution("acme", execution.id)) == execution
    assert worker.ask(FindExecution(None, execution.id)) == execution
    assert worker.ask(FindExecution("globex", execution.id)) is None
    assert worker.ask(FindExecution("acme", execution.id + 1)) is None
    assert (execution.key, execution.frees_key, execution.due_at) == ("k", True, due_at)


def test_values_come_back_byte_for_byte(worker: Worker) -> None:
    given = bytes(range(256)) * 5
    execution = worker.start(input=given)
    worker.advance(execution, entry(body=given), ending=succeeded(b""))
    assert worker.execution(execution.id).input == given
    assert worker.execution(execution.id).result == b""
    assert worker.journal(execution.id) == [entry(body=given)]


def test_a_journal_is_read_in_the_order_in_which_steps_ended(worker: Worker) -> None:
    execution = worker.start()
    steps = [entry(0, at=5), entry(2 << 32, at=6), entry(3 << 32, at=6), entry(1, at=7)]
    worker.advance(execution, *reversed(steps))
    assert worker.journal(execution.id) == steps
    assert worker.ask(ReadJournal(worker.draw())) == []


def test_executions_are_listed_newest_first(worker: Worker) -> None:
    first = worker.start("order")
    second = worker.start("mail", sort=Sort.TASK, status=Status.READY)
    third = worker.start("order", "k")
    worker.advance(third, ending=PAUSED)
    third = worker.execution(third.id)
    other = worker.of("globex").start("order")

    def listed(tenant: str | None = "acme", **fields: object) -> list[int]:
        return [each.id for each in worker.ask(ListExecutions(tenant)._replace(**fields))]

    assert worker.ask(ListExecutions("acme")) == [third, second, first]
    assert listed(None) == [other.id, third.id, second.id, first.id]
    assert listed(status=Status.PAUSED) == [third.id]
    assert listed(name="order") == [third.id, first.id]
    assert listed(sort=Sort.TASK) == [second.id]
    assert listed(sort=Sort.WORKFLOW, name="mail") == []
    assert listed(limit=2) == [third.id, second.id]
    assert listed(before=second.id) == [first.id]
    assert listed("nobody") == []


def test_promises_are_listed_newest_first(worker: Worker) -> None:
    execution = worker.start()
    first = worker.make("a", "k").promise
    second = worker.wait(execution, 0, "b").promise
    due_at = worker.clock.now() + 5
    sleep = worker.wait(execution, 1, "sleep", PromiseKind.SLEEP, due_at=due_at).promise
    other = worker.of("globex").make("c").promise
    settled = worker.resolve(worker.target(id=first.id)).promise

    def listed(tenant: str | None = "acme", **fields: object) -> list[int]:
        return [each.id for each in worker.ask(ListPromises(tenant)._replace(**fields))]

    assert worker.ask(ListPromises("acme")) == [second, settled]
    assert listed(None) == [other.id, second.id, first.id]
    assert listed(state=PromiseState.RESOLVED) == [first.id]
    assert listed(kind=PromiseKind.SLEEP) == [sleep.id]
    assert listed(execution=execution.id) == [sleep.id, second.id]
    assert listed(execution=execution.id, kind=PromiseKind.PROMISE) == [second.id]
    assert listed("globex", execution=execution.id) == []
    assert listed(limit=1) == [second.id]
    assert listed(before=second.id) == [first.id]
    assert listed(key="k") == [first.id]
    assert listed(None, key="k") == [first.id]
    assert listed(key="K") == []
    assert listed(key="k", state=PromiseState.PENDING) == []


@pytest.mark.parametrize(
    "state, keys", [(State.IN_PROGRESS, "k"), (State.PROMISE, "p"), (State.SUCCEEDED, "r")]
)
def test_the_ledger_lists_the_keys_of_durable_work(worker: Worker, state: State, keys: str) -> None:
    worker.wait(worker.start("order", "k"), key="p")
    worker.resolve(worker.target("p"), request_key="r")
    found = worker.caller.store.list(Query(state), worker.clock.now())
    assert "".join(each.record.ref.key for each in found) == keys
    assert not any(each.lapsed for each in found)


def test_the_ledger_lists_what_has_been_running_for_long(database: Place) -> None:
    """What processes claim lies above a floor that rises; durable work stays where it is."""
    clock = database.clock
    store = store_of(database.url, clock)
    store.open(lambda _: 1 << 62)
    worker = Worker(Caller(store, clock, itertools.count(clock.now() << 21)))
    try:
        worker.wait(worker.start("order", "k"), key="p")
        worker.start("order", "j")
        found = store.list(Query(State.IN_PROGRESS), clock.now())
        assert [each.record.ref.key for each in found] == ["j", "k"]
        found = store.list(Query(State.PROMISE), clock.now())
        assert [each.record.ref.key for each in found] == ["p"]
    finally:
        store.close()
