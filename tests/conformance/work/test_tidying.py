"""What time does: it settles what is due, ends what is late, and forgets what is over."""

from itertools import count
from typing import Any

from oncekey.core.answers import Advanced, Existing, Lost, Ripe, Started, Woken
from oncekey.core.execution import Entry, PromiseKind, PromiseState, Sort, Status, Step
from oncekey.core.identifier import first_number
from oncekey.core.model import Kind
from oncekey.core.ports import Peek
from oncekey.core.work import Due, FindExecution, FindPromise, Forget, Know, Known, Rewind
from oncekey.stores.plans import carry_out
from oncekey.stores.requests import drive
from tests.fixtures.stores import DAY, Place
from tests.fixtures.work import LATE, OVERDUE, PAUSED, Worker, entry, failed, ref_of, succeeded

TOKEN = b"t" * 32
WEEK = 7 * DAY


def forget(worker: Worker, **fields: int) -> int:
    now = worker.clock.now()
    count: int = worker.ask(Forget(now, now - WEEK)._replace(**fields))
    return count


# -- what is due -------------------------------------------------------------------------------


def test_nothing_is_due(worker: Worker) -> None:
    worker.wait(worker.start())
    assert worker.due() == Ripe([], [], None)


def test_a_sleep_ends_when_its_time_has_come(worker: Worker) -> None:
    execution, now = worker.start(), worker.clock.now()
    promise = worker.wait(
        execution,
        2,
        "sleep",
        PromiseKind.SLEEP,
        due_at=now + 50,
        advance=worker.advancing(execution, waits=0),
    ).promise
    worker.clock.advance(49)
    assert worker.due() == Ripe([], [], now + 50)
    worker.clock.advance(3)

    ripe = worker.due()

    told = Entry(2, Step.SLEEP, "sleep", b"p" * 16, False, b"null", 1, now, now + 52)
    assert ripe == Ripe([Woken(execution.id, True, told, promise.id)], [], None)
    assert worker.journal(execution.id) == [told]
    settled = worker.promise(id=promise.id)
    assert settled is not None
    assert (settled.state, settled.settled_by) == (PromiseState.RESOLVED, None)
    assert worker.execution(execution.id).status is Status.READY


def test_what_began_while_the_clock_was_ahead_begins_anew(worker: Worker) -> None:
    now = worker.clock.now()
    worker.clock.advance(DAY)
    worker.draw = count(first_number(now + DAY)).__next__
    execution = worker.start(due_at=now + DAY + 70)
    promise = worker.wait(execution, 2, "sleep", PromiseKind.SLEEP, due_at=now + DAY + 50).promise
    worker.clock.advance(-DAY)

    assert worker.ask(Rewind(now, 1000)) == 2

    assert worker.due() == Ripe([], [], now + 50)
    worker.clock.advance(50)
    assert [woken.promise for woken in worker.due().woken] == [promise.id]
    assert worker.execution(execution.id).due_at == now + 70
    assert worker.ask(Rewind(now, 1000)) == 0


def test_what_began_a_little_later_is_left_alone(worker: Worker) -> None:
    now = worker.clock.now()
    worker.clock.advance(900)
    worker.draw = count(first_number(now + 900)).__next__
    worker.wait(worker.start(), 2, "sleep", PromiseKind.SLEEP, due_at=now + 950)
    worker.clock.advance(-900)

    assert worker.ask(Rewind(now, 1000)) == 0


def test_a_promise_that_was_not_settled_in_time_fails(worker: Worker) -> None:
    for kind in (PromiseKind.PROMISE, PromiseKind.EVENT, PromiseKind.CALL):
        execution = worker.start()
        promise = worker.wait(execution, 0, "p", kind, due_at=worker.clock.now()).promise
        [woken] = worker.due().woken
        assert woken.entry is not None
        assert (woken.entry.failed, woken.entry.body) == (True, LATE)
        late = worker.promise(id=promise.id)
        assert late is not None
        assert (late.state, late.body) == (PromiseState.TIMED_OUT, LATE)


def test_a_promise_without_an_execution_times_out(worker: Worker) -> None:
    promise = worker.make(due_at=worker.clock.now()).promise
    assert worker.due() == Ripe([], [], None, (promise.id,))
    late = worker.promise(id=promise.id)
    assert late is not None
    assert (late.state, late.settled_at) == (PromiseState.TIMED_OUT, worker.clock.now())


def test_what_was_settled_in_time_is_not_due(worker: Worker) -> None:
    promise = worker.make(due_at=worker.clock.now() + 5).promise
    worker.resolve(worker.target(id=promise.id))
    worker.clock.advance(5)
    worker.due()
    settled = worker.promise(id=promise.id)
    assert settled is not None
    assert settled.state is PromiseState.RESOLVED


def test_the_longest_due_come_first_and_no_more_than_asked_for(worker: Worker) -> None:
    now, execution = worker.clock.now(), worker.start()
    numbers = [
        worker.wait(execution, seq, "s", PromiseKind.SLEEP, due_at=now + due).promise.id
        for seq, due in enumerate((3, 1, 2, 9))
    ]
    worker.clock.advance(5)
    ripe = worker.due(limit=2)
    assert [woken.promise for woken in ripe.woken] == [numbers[1], numbers[2]]
    assert ripe.next_at == now + 3
    ripe = worker.due(limit=2)
    assert [woken.promise for woken in ripe.woken] == [numbers[0]]
    assert ripe.next_at == now + 9


def test_an_execution_that_is_not_over_in_time_fails(worker: Worker) -> None:
    now = worker.clock.now()
    running = worker.start("order", "k", due_at=now + 10)
    ready = worker.start(status=Status.READY, due_at=now + 9)
    waiting = worker.start(due_at=now + 8)
    worker.wait(waiting, advance=worker.advancing(waiting, waits=0))
    assert worker.due().next_at == now + 8
    worker.clock.advance(10)

    assert worker.due() == Ripe([], [waiting.id, ready.id, running.id], None)

    for number in (running.id, ready.id, waiting.id):
        late = worker.execution(number)
        assert (late.status, late.result, late.fence) == (Status.FAILED, OVERDUE, 2)
        assert (late.completed_at, late.expires_at) == (now + 10, now + 10 + DAY)
    assert worker.advance(running, entry(), ending=succeeded()) == Lost()
    [promise] = worker.promises_of(waiting)
    assert promise.state is PromiseState.CANCELLED
    record = worker.ask(Peek(ref_of("acme", "start", "k").digest)).record
    assert (record.outcome.kind, record.outcome.body) == (Kind.ERROR, OVERDUE)


def test_whoever_called_a_late_execution_is_told(worker: Worker) -> None:
    parent, start = worker.start(), worker.starting("child", due_at=worker.clock.now())
    promise = worker.wait(parent, 0, "child", PromiseKind.CALL, start=start).promise
    ripe = worker.due()
    [told] = worker.journal(parent.id)
    assert ripe == Ripe([Woken(parent.id, False, told, promise.id)], [start.execution.id], None)
    assert (told.failed, told.body) == (True, OVERDUE)


def test_what_is_paused_or_over_is_not_late(worker: Worker) -> None:
    for ending in (PAUSED, succeeded()):
        execution = worker.start(due_at=worker.clock.now())
        worker.advance(execution, ending=ending)
        assert worker.due() == Ripe([], [], None)
        assert worker.execution(execution.id).status is ending.status


def test_an_execution_that_ends_at_the_last_moment_is_not_late(database: Place) -> None:
    first = Worker(database.open())
    execution = first.start(due_at=first.clock.now())
    store = first.caller.store
    steps = carry_out(Due(first.clock.now(), LATE, OVERDUE), store.setting())

    def run(name: str, values: dict[str, Any]) -> list[Any]:
        rows: list[Any] = store.transact(lambda run: run(name, values), write=True)
        if name == "due_executions":
            assert [row[0] for row in rows] == [execution.id]
            assert first.advance(execution, ending=succeeded()) == Advanced()
        return rows

    assert drive(steps, run) == Ripe([], [], None)
    assert first.execution(execution.id).status is Status.SUCCEEDED


# -- forgetting --------------------------------------------------------------------------------


def test_an_execution_is_kept_for_its_time(worker: Worker) -> None:
    execution = worker.start("order", "k")
    promise = worker.wait(execution, 1, token=TOKEN).promise
    worker.advance(execution, entry(), ending=succeeded(keyed=True))
    worker.clock.advance(DAY - 1)
    assert forget(worker) == 0
    worker.clock.advance(1)
    assert forget(worker) == 1
    assert worker.ask(FindExecution(None, execution.id)) is None
    assert worker.journal(execution.id) == []
    assert worker.promise(id=promise.id) is None
    assert worker.promise(token=TOKEN) is None
    assert isinstance(worker.ask(worker.starting("order", "k")), Started)


def test_what_is_not_over_is_never_forgotten(worker: Worker) -> None:
    running, stopped = worker.start("order", "k", kept=1), worker.start("order", "j", kept=1)
    worker.advance(stopped, ending=PAUSED)
    worker.clock.advance(100 * DAY)
    assert forget(worker) == 0
    for key, execution in (("k", running), ("j", stopped)):
        again = worker.ask(worker.starting("order", key))
        assert isinstance(again, Existing)
        assert again.execution is not None
        assert again.execution.id == execution.id


def test_the_sweep_leaves_what_runs_and_what_waits(worker: Worker) -> None:
    execution = worker.start("order", "k", kept=1)
    worker.wait(execution, key="p", kept=1)
    worker.clock.advance(5)
    store, now = worker.caller.store, worker.clock.now()
    assert (store.count_expired(now), store.sweep(now, 10)) == (0, 0)
    worker.advance(execution, ending=failed(keyed=True))
    worker.clock.advance(DAY)
    assert store.sweep(worker.clock.now(), 10) == 1


def test_a_promise_alone_is_kept_for_a_week_once_it_is_settled(worker: Worker) -> None:
    promise = worker.make(token=TOKEN).promise
    worker.clock.advance(WEEK)
    assert forget(worker) == 0
    worker.resolve(worker.target(token=TOKEN))
    worker.clock.advance(WEEK - 1)
    assert forget(worker) == 0
    worker.clock.advance(1)
    assert forget(worker) == 1
    assert worker.promise(id=promise.id) is None
    assert worker.ask(FindPromise(worker.target(token=TOKEN))) is None


def test_the_key_of_a_promise_ends_with_its_time(worker: Worker) -> None:
    promise = worker.make("p", "k", kept=10).promise
    worker.resolve(worker.target("k"), request_key="r", kept=5)
    worker.clock.advance(10)
    assert forget(worker) == 1
    assert worker.ask(Peek(ref_of("acme", "promise", "k").digest)) is None
    # The request's own key has an outcome, and is the sweep's to delete.
    assert worker.ask(Peek(ref_of("acme", "resolve", "r").digest)) is not None
    found = worker.promise(id=promise.id)
    assert found is not None
    assert (found.key, found.key_expires_at) == (None, None)


def test_what_is_parked_ends_with_its_time(worker: Worker) -> None:
    worker.resolve(worker.target("k"), park="k", park_kept=10)
    worker.clock.advance(9)
    assert forget(worker) == 0
    worker.clock.advance(1)
    assert forget(worker) == 1
    assert forget(worker) == 0


def test_what_was_published_ends_with_its_time(worker: Worker) -> None:
    worker.ask(worker.publishing(expires_at=worker.clock.now() + 10))
    worker.clock.advance(9)
    assert forget(worker) == 0
    worker.clock.advance(1)
    assert forget(worker) == 1
    assert forget(worker) == 0


def test_control_keys_are_forgotten_after_their_time(worker: Worker) -> None:
    execution = worker.start()
    worker.control("resume", execution)
    now = worker.clock.now()
    assert forget(worker, controls_before=now - 1) == 0
    assert forget(worker, controls_before=now) == 1
    assert worker.control("resume", execution).verdict == "failed"


def test_no_more_is_forgotten_than_asked_for(worker: Worker) -> None:
    numbers = []
    for wait in (3, 1, 2):
        execution = worker.start()
        numbers.append(execution.id)
        worker.advance(execution, ending=succeeded()._replace(keep=wait))
    worker.clock.advance(5)
    assert forget(worker, limit=2) == 2
    left = [number for number in numbers if worker.ask(FindExecution(None, number))]
    assert left == [numbers[0]]
    assert forget(worker, limit=2) == 1


# -- names -------------------------------------------------------------------------------------


def test_names_that_can_be_started_are_known_from_then_on(worker: Worker) -> None:
    assert worker.ask(Known()) == []
    assert worker.ask(Know(((Sort.WORKFLOW, "order"), (Sort.TASK, "mail")), 5)) is True
    assert worker.ask(Know(((Sort.TASK, "order"), (Sort.TASK, "mail")), 6)) is True
    assert sorted(worker.ask(Known())) == [
        (Sort.WORKFLOW, "order"),
        (Sort.TASK, "mail"),
        (Sort.TASK, "order"),
    ]
