"""Cancel, resume and fork: each once for its request key, the claim and the effect together."""

import json
from typing import Any

import pytest

from oncekey.core.answers import Advanced, Controlled, Existing, Lost, Started
from oncekey.core.execution import (
    Execution,
    PromiseKind,
    PromiseState,
    Sort,
    Status,
    execution_id_of,
)
from oncekey.core.model import Kind, State
from oncekey.core.ports import Gone, Peek
from oncekey.core.work import FindExecution, Forget, ListExecutions
from tests.fixtures.stores import DAY
from tests.fixtures.work import FAILURE, PAUSED, Worker, entry, failed, ref_of, succeeded


def told(execution: Execution, status: str) -> str:
    return json.dumps({"workflow_id": execution.public_id, "status": status})


def over(worker: Worker, ending: Any) -> Execution:
    execution = worker.start()
    assert worker.advance(execution, ending=ending) == Advanced()
    return worker.execution(execution.id)


def waiting(worker: Worker) -> Execution:
    execution = worker.start()
    worker.wait(execution, advance=worker.advancing(execution, waits=0))
    return worker.execution(execution.id)


def paused(worker: Worker) -> Execution:
    return over(worker, PAUSED)


def running(worker: Worker) -> Execution:
    return worker.start()


def ready(worker: Worker) -> Execution:
    return worker.start(status=Status.READY)


def succeeded_one(worker: Worker) -> Execution:
    return over(worker, succeeded())


def failed_one(worker: Worker) -> Execution:
    return over(worker, failed())


# -- request keys ------------------------------------------------------------------------------


def test_the_first_time_and_again(worker: Worker) -> None:
    execution = running(worker)
    first = worker.control("cancel", execution)
    cancelled = worker.execution(execution.id)
    assert first == Controlled("done", told(execution, "cancelled"), cancelled)
    assert worker.control("cancel", execution) == Controlled("replayed", first.answer)


def test_a_failure_is_kept_as_well(worker: Worker) -> None:
    execution = running(worker)
    first = worker.control("resume", execution)
    assert first.verdict == "failed"
    assert "only what is paused can be resumed" in json.loads(first.answer)["error"]
    worker.advance(execution, ending=PAUSED)
    assert worker.control("resume", execution) == Controlled("failed-before", first.answer)
    assert worker.execution(execution.id).status is Status.PAUSED


def test_another_action_workflow_or_parameters(worker: Worker) -> None:
    execution, other = paused(worker), paused(worker)
    worker.control("resume", execution, parameters='{"a":1}')
    same = {"parameters": '{"a":1}'}
    assert worker.control("resume", execution, **same).verdict == "replayed"
    assert worker.control("cancel", execution, **same) == Controlled("other")
    assert worker.control("resume", other, **same) == Controlled("other")
    assert worker.control("resume", execution, parameters="{}") == Controlled("other")
    assert worker.execution(other.id).status is Status.PAUSED


def test_keys_of_other_tenants_are_other_keys(worker: Worker) -> None:
    globex = worker.of("globex")
    worker.control("cancel", running(worker))
    assert globex.control("cancel", running(globex)).verdict == "done"


def test_what_is_unknown_or_another_tenants(worker: Worker) -> None:
    execution = running(worker)
    assert worker.control("cancel", worker.draw()) == Controlled("unknown")
    assert worker.of("globex").control("cancel", execution) == Controlled("unknown")
    assert worker.execution(execution.id) == execution
    assert worker.control("cancel", execution).verdict == "done"


def test_a_key_is_known_longer_than_what_it_was_for(worker: Worker) -> None:
    execution = worker.start(keep=1)
    first = worker.control("cancel", execution)
    worker.clock.advance(1)
    now = worker.clock.now()
    assert worker.ask(Forget(now, now - 7 * DAY)) == 1
    assert worker.ask(FindExecution(None, execution.id)) is None
    assert worker.control("cancel", execution) == Controlled("replayed", first.answer)
    assert worker.control("cancel", execution, "c-2") == Controlled("unknown")


# -- cancel ------------------------------------------------------------------------------------


@pytest.mark.parametrize("begin", [ready, running, waiting, paused])
def test_whatever_is_not_over_can_be_cancelled(worker: Worker, begin: Any) -> None:
    execution = begin(worker)
    worker.clock.advance(5)

    answer = worker.control("cancel", execution)

    now = worker.clock.now()
    cancelled = execution._replace(
        status=Status.CANCELLED,
        owner=0,
        fence=execution.fence + 1,
        result=FAILURE,
        completed_at=now,
        expires_at=now + execution.keep,
    )
    assert answer == Controlled("done", told(execution, "cancelled"), cancelled)
    assert worker.execution(execution.id) == cancelled
    assert worker.advance(execution, entry(), ending=succeeded()) == Lost()
    assert worker.journal(execution.id) == []
    assert worker.pick_up() == []


@pytest.mark.parametrize("begin", [succeeded_one, failed_one])
def test_what_is_over_cannot_be_cancelled(worker: Worker, begin: Any) -> None:
    execution = begin(worker)
    answer = worker.control("cancel", execution)
    assert answer.verdict == "failed"
    assert "what is over cannot be cancelled" in json.loads(answer.answer)["error"]
    assert worker.execution(execution.id) == execution


def test_what_is_cancelled_is_cancelled(worker: Worker) -> None:
    execution = running(worker)
    worker.control("cancel", execution)
    before = worker.execution(execution.id)
    worker.clock.advance(5)
    answer = worker.control("cancel", execution, "c-2")
    assert answer == Controlled("done", told(execution, "cancelled"), before)


def test_what_it_waited_for_is_cancelled_with_it(worker: Worker) -> None:
    execution = waiting(worker)
    worker.control("cancel", execution)
    [promise] = worker.promises_of(execution)
    assert (promise.state, promise.settled_at) == (PromiseState.CANCELLED, worker.clock.now())


def test_its_caller_is_told(worker: Worker) -> None:
    parent = worker.start()
    start = worker.starting("child")
    worker.wait(
        parent,
        0,
        "child",
        PromiseKind.CALL,
        start=start,
        advance=worker.advancing(parent, waits=0),
    )
    [woken] = worker.control("cancel", start.execution).ended
    [failure] = worker.journal(parent.id)
    assert (woken.execution, woken.ready, woken.entry) == (parent.id, True, failure)
    assert (failure.failed, failure.body) == (True, FAILURE)


def test_the_key_of_a_cancelled_execution_is_settled(worker: Worker) -> None:
    execution = worker.start("order", "k")
    worker.control("cancel", execution)
    record = worker.ask(Peek(ref_of("acme", "start", "k").digest)).record
    assert record.state is State.FAILED
    assert (record.outcome.kind, record.outcome.body) == (Kind.ERROR, FAILURE)
    again = worker.ask(worker.starting("order", "k"))
    assert isinstance(again, Existing)
    assert again.execution == worker.execution(execution.id)


def test_a_cancelled_execution_may_give_its_key_back(worker: Worker) -> None:
    execution = worker.start("order", "k", frees_key=True)
    worker.control("cancel", execution)
    assert isinstance(worker.ask(worker.starting("order", "k")), Started)
    assert worker.execution(execution.id).key is None


# -- resume ------------------------------------------------------------------------------------


def test_what_is_paused_goes_on(worker: Worker) -> None:
    execution = worker.start("order", "k")
    worker.wait(execution, 1, "payment")
    worker.wait(execution, 0, "charge", PromiseKind.RETRY, attempts=69)
    worker.advance(execution, ending=PAUSED)
    stopped = worker.execution(execution.id)
    assert (stopped.status, stopped.result, stopped.key) == (Status.PAUSED, FAILURE, "k")
    assert stopped.completed_at is None

    answer = worker.control("resume", execution)

    going = stopped._replace(status=Status.READY, result=None)
    assert answer == Controlled("done", told(execution, "ready"), going)
    [picked] = worker.pick_up()
    assert picked.execution == going._replace(
        status=Status.RUNNING, owner=picked.execution.owner, fence=2
    )
    assert [promise.name for promise in picked.promises] == ["payment"]


def test_a_task_is_resumed_under_its_own_id(worker: Worker) -> None:
    task = worker.start("mail", sort=Sort.TASK)
    worker.advance(task, ending=PAUSED)
    assert worker.control("resume", task).answer == told(task, "ready")
    assert task.public_id.startswith("tk_")


@pytest.mark.parametrize("begin", [ready, running, waiting, succeeded_one, failed_one])
def test_nothing_else_can_be_resumed(worker: Worker, begin: Any) -> None:
    execution = begin(worker)
    assert worker.control("resume", execution).verdict == "failed"
    assert worker.execution(execution.id) == execution


# -- fork --------------------------------------------------------------------------------------


def forked(worker: Worker, execution: Execution, from_step: int, key: str = "c-1") -> Any:
    number = worker.draw()
    return worker.control("fork", execution, key, fork=number, from_step=from_step)


def journaled(worker: Worker) -> Execution:
    """Its steps ended in another order than they began."""
    due_at = worker.clock.now() + 500
    execution = worker.start("order", "k", due_at=due_at, frees_key=True)
    steps = (entry(0, "a", at=7), entry(1, "b", at=9), entry(1 << 32, "c", at=8))
    worker.advance(execution, *steps)
    return worker.execution(execution.id)


@pytest.mark.parametrize("from_step, copied", [(1, ""), (2, "a"), (3, "ac"), (4, "acb")])
def test_a_fork_has_done_what_was_done_before_the_step(
    worker: Worker, from_step: int, copied: str
) -> None:
    source = journaled(worker)
    worker.clock.advance(100)

    answer = forked(worker, source, from_step)

    fork = answer.execution
    assert answer == Controlled("done", told(fork, "ready"), fork)
    assert fork == source._replace(
        id=fork.id,
        status=Status.READY,
        owner=0,
        created_at=worker.clock.now(),
        key=None,
        due_at=worker.clock.now() + 500,
        forked_from=source.id,
        forked_at=from_step,
        origin=source.id,
    )
    whole = {each.name: each for each in worker.journal(source.id)}
    assert worker.journal(fork.id) == [whole[name] for name in copied]
    assert worker.execution(source.id) == source


def test_steps_have_their_order_also_when_a_clock_was_set_back(worker: Worker) -> None:
    execution = worker.start()
    steps = (entry(0, "a", at=9), entry(1, "b", at=3), entry(2, "c", at=4), entry(1 << 32, at=5))
    worker.advance(execution, *steps)

    assert [each.seq for each in worker.journal(execution.id)] == [1 << 32, 0, 1, 2]
    fork = forked(worker, execution, 3).execution
    assert {each.seq for each in worker.journal(fork.id)} == {1 << 32, 0}


@pytest.mark.parametrize("from_step", [-1, 0, 5])
def test_there_is_no_such_step(worker: Worker, from_step: int) -> None:
    source = journaled(worker)
    answer = forked(worker, source, from_step)
    assert answer.verdict == "failed"
    assert "from_step must be 1 to 4" in json.loads(answer.answer)["error"]
    assert worker.ask(ListExecutions("acme")) == [source]


@pytest.mark.parametrize("begin", [waiting, paused, succeeded_one, failed_one])
def test_anything_can_be_forked(worker: Worker, begin: Any) -> None:
    source = begin(worker)
    fork = forked(worker, source, 1).execution
    nothing = {"result": None, "completed_at": None, "expires_at": None}
    assert fork._asdict().items() >= nothing.items()
    [picked] = worker.pick_up()
    assert (picked.execution.id, picked.execution.fence) == (fork.id, 2)
    assert picked.promises == []


def test_a_fork_of_a_fork_shares_the_first_ones_time(worker: Worker) -> None:
    source = journaled(worker)
    first = forked(worker, source, 3).execution
    second = forked(worker, first, 2, "c-2").execution
    assert (second.forked_from, second.origin) == (first.id, source.id)
    assert [each.name for each in worker.journal(second.id)] == ["a"]


def test_a_fork_is_made_once(worker: Worker) -> None:
    source = journaled(worker)
    first = forked(worker, source, 2)
    assert forked(worker, source, 2) == Controlled("replayed", first.answer)
    assert len(worker.ask(ListExecutions("acme"))) == 2


def test_a_number_somebody_else_has_drawn_is_not_forked_into(worker: Worker) -> None:
    source, other = journaled(worker), running(worker)
    clash = {"fork": other.id, "from_step": 3}
    assert worker.control("fork", source, **clash) == Gone()
    assert worker.journal(other.id) == []
    assert worker.execution(other.id) == other
    assert forked(worker, source, 3).verdict == "done"


def test_the_end_of_a_fork_leaves_the_key_of_its_source(worker: Worker) -> None:
    source = journaled(worker)
    number = forked(worker, source, 1).execution.id
    fork = worker.pick_up(only=number)[0].execution
    worker.advance(fork, ending=failed())
    assert worker.execution(source.id).key == "k"
    assert fork.public_id == execution_id_of(source.sort, number)
