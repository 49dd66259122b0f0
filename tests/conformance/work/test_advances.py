"""What a run has done: journaled as long as it has the execution, and ended once."""

import pytest

from oncekey.core.answers import Advanced, Lost, Woken
from oncekey.core.execution import Execution, PromiseKind, Status, Step
from oncekey.core.model import Kind, Outcome
from oncekey.core.ports import Peek, Purge
from oncekey.core.work import Ending, HandBack, Load
from tests.fixtures.stores import DAY
from tests.fixtures.work import FAILURE, Worker, entry, failed, ref_of, succeeded


def outcome_of(worker: Worker, key: str) -> Outcome | None:
    found = worker.ask(Peek(ref_of(worker.tenant, "start", key).digest))
    outcome: Outcome | None = found.record.outcome
    return outcome


def taken_over(worker: Worker) -> tuple[Execution, Execution]:
    """An execution as its first run knows it, and as the one that has it now."""
    before = worker.start()
    worker.ask(HandBack(((before.id, before.fence),)))
    (picked,) = worker.pick_up()
    assert picked.execution.fence == 2
    return before, picked.execution


def test_steps_are_journaled_whole_in_the_order_in_which_they_ended(worker: Worker) -> None:
    execution = worker.start()
    late = entry(0, "slow", b'{"a": 1}', at=9)._replace(failed=True, attempts=3, started_at=4)
    early = entry(1 << 32, "quick", b"", at=7)._replace(step=Step.START)

    assert worker.advance(execution, late, early) == Advanced()

    assert worker.journal(execution.id) == [early, late]


def test_a_group_advances_many(worker: Worker) -> None:
    executions = [worker.start() for _ in range(30)]
    steps = [[entry(seq, body=b"x" * seq) for seq in range(number)] for number in range(30)]

    answers = worker.caller.ask_all(
        [worker.advancing(each, *done) for each, done in zip(executions, steps, strict=True)]
    )

    assert set(answers) == {Advanced()}
    assert [worker.journal(each.id) for each in executions] == steps


def test_what_is_told_twice_is_journaled_once(worker: Worker) -> None:
    """A commit nobody was sure of went through."""
    execution = worker.start()
    request = worker.advancing(execution, entry(0, body=b"1"))
    worker.ask(request)

    assert worker.ask(request) == Advanced()
    assert worker.advance(execution, entry(0, body=b"2"), entry(1)) == Advanced()

    assert worker.journal(execution.id) == [entry(0, body=b"1"), entry(1)]


def test_a_run_that_was_taken_over_changes_nothing(worker: Worker) -> None:
    before, now = taken_over(worker)
    other = worker.start()

    answers = worker.caller.ask_all(
        [
            worker.advancing(before, entry(1)),
            worker.advancing(other, entry(0)),
            worker.advancing(before, ending=succeeded(plain=True)),
            worker.advancing(before, waits=before.wakes),
            worker.advancing(now, entry(2)),
        ]
    )

    assert answers == [Lost(), Advanced(), Lost(), Lost(), Advanced()]
    assert worker.journal(before.id) == [entry(2)]
    assert worker.journal(other.id) == [entry(0)]
    assert worker.execution(before.id) == now


def test_what_nobody_started_cannot_advance(worker: Worker) -> None:
    execution = worker.starting().execution
    assert worker.advance(execution, entry(0)) == Lost()
    assert worker.journal(execution.id) == []


# -- endings ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.FAILED, Status.CANCELLED])
def test_an_ending_is_kept_with_what_led_to_it(worker: Worker, status: Status, plain: bool) -> None:
    execution = worker.start()
    ending = Ending(status, b'"result"', 1000, plain=plain)

    assert worker.advance(execution, entry(0), ending=ending) == Advanced()

    now = worker.clock.now()
    assert worker.execution(execution.id) == execution._replace(
        status=status, owner=0, result=b'"result"', completed_at=now, expires_at=now + 1000
    )
    assert worker.journal(execution.id) == [entry(0)]


def test_an_ending_that_is_told_twice_has_happened(worker: Worker) -> None:
    execution = worker.start(key="k")
    request = worker.advancing(execution, entry(0), ending=succeeded(keyed=True, plain=True))
    worker.ask(request)

    assert worker.ask(request) == Advanced()
    assert worker.journal(execution.id) == [entry(0)]


def test_what_is_over_does_not_go_on(worker: Worker) -> None:
    execution = worker.start()
    worker.advance(execution, ending=succeeded(plain=True))

    assert worker.advance(execution, entry(1)) == Lost()
    assert worker.advance(execution, ending=failed()) == Lost()

    assert worker.execution(execution.id).status is Status.SUCCEEDED
    assert worker.journal(execution.id) == []


@pytest.mark.parametrize("plain", [True, False])
def test_an_ending_settles_its_key(worker: Worker, plain: bool) -> None:
    good, bad = worker.start(key="good"), worker.start(key="bad")
    now = worker.clock.now()

    worker.caller.ask_all(
        [
            worker.advancing(good, ending=succeeded(keyed=True, plain=plain)),
            worker.advancing(bad, ending=failed(keyed=True)._replace(plain=plain)),
        ]
    )

    assert outcome_of(worker, "good") == Outcome(Kind.VALUE, body=b'"done"')
    assert outcome_of(worker, "bad") == Outcome(Kind.ERROR, 500, body=FAILURE)
    found = worker.ask(Peek(ref_of("acme", "start", "good").digest)).record
    assert (found.completed_at, found.expires_at) == (now, now + DAY)


@pytest.mark.parametrize("status, kept", [(Status.FAILED, False), (Status.SUCCEEDED, True)])
def test_a_failure_may_give_the_key_back(worker: Worker, status: Status, kept: bool) -> None:
    execution = worker.start(key="k", frees_key=True)

    worker.advance(execution, ending=Ending(status, b"null", DAY, keyed=True))

    found = worker.ask(Peek(ref_of("acme", "start", "k").digest))
    assert (found is not None) is kept
    assert worker.execution(execution.id).status is status


def test_a_key_that_was_purged_meanwhile_gets_no_outcome(worker: Worker) -> None:
    execution = worker.start(key="k")
    digest = ref_of("acme", "start", "k").digest
    worker.ask(Purge(digest))

    ending = succeeded(keyed=True, plain=True)
    assert worker.advance(execution, ending=ending) == Advanced()

    assert worker.ask(Peek(digest)) is None
    assert worker.execution(execution.id).status is Status.SUCCEEDED


@pytest.mark.parametrize("plain", [True, False])
def test_a_pause_is_no_end(worker: Worker, plain: bool) -> None:
    execution = worker.start(key="k")
    pause = Ending(Status.PAUSED, FAILURE, DAY, keyed=True, plain=plain)

    assert worker.advance(execution, entry(0), ending=pause) == Advanced()

    assert worker.execution(execution.id) == execution._replace(
        status=Status.PAUSED, owner=0, result=FAILURE
    )
    assert outcome_of(worker, "k") is None


# -- who waits for the end -------------------------------------------------------------------------


def called(worker: Worker, **fields: object) -> tuple[Execution, Execution]:
    """An execution, and the child it waits for."""
    parent, child = worker.start(), worker.starting("child", **fields)
    answer = worker.wait(parent, 0, "child", PromiseKind.CALL, start=child)
    assert answer.started == child.execution.id
    return parent, worker.execution(child.execution.id)


def test_an_ending_tells_who_waits_for_it(worker: Worker) -> None:
    parent, child = called(worker)
    other = worker.start()

    told, plain = worker.caller.ask_all(
        [
            worker.advancing(child, entry(0), ending=succeeded(b'"child"', plain=True)),
            worker.advancing(other, ending=succeeded(plain=True)),
        ]
    )

    (answered,) = worker.journal(parent.id)
    assert (answered.step, answered.failed, answered.body) == (Step.CALL, False, b'"child"')
    assert [(woken.execution, woken.ready, woken.entry) for woken in told.ended] == [
        (parent.id, False, answered)
    ]
    assert plain == Advanced()
    assert worker.journal(child.id) == [entry(0)]
    assert worker.execution(child.id).status is Status.SUCCEEDED


def test_an_ending_wakes_who_lies_down_for_it(worker: Worker) -> None:
    parent, child = called(worker)
    worker.advance(parent, waits=0)

    told = worker.advance(child, ending=failed()._replace(plain=True))

    (woken,) = told.ended
    assert isinstance(woken, Woken)
    assert (woken.execution, woken.ready) == (parent.id, True)
    assert worker.execution(parent.id).status is Status.READY
    (answered,) = worker.journal(parent.id)
    assert (answered.failed, answered.body) == (True, FAILURE)


# -- lying down ------------------------------------------------------------------------------------


def test_a_run_that_waits_is_nobodys(worker: Worker) -> None:
    execution = worker.start()

    assert worker.advance(execution, entry(0), waits=0) == Advanced()

    found = worker.execution(execution.id)
    assert (found.status, found.owner, found.fence) == (Status.WAITING, 0, 1)
    assert worker.journal(execution.id) == [entry(0)]


def test_a_run_that_was_woken_meanwhile_does_not_lie_down(worker: Worker) -> None:
    execution = worker.start()
    worker.wait(execution, 0)
    worker.resolve(worker.target(execution=execution.id, name="payment"))

    assert worker.advance(execution, waits=0) == Advanced(woken=True)
    assert worker.execution(execution.id).status is Status.RUNNING
    assert worker.advance(execution, waits=1) == Advanced()
    assert worker.execution(execution.id).status is Status.WAITING


def test_a_run_that_lies_down_may_go_on_all_the_same(worker: Worker) -> None:
    execution = worker.start()
    worker.advance(execution, waits=0)

    assert worker.advance(execution, entry(0)) == Advanced()

    assert worker.execution(execution.id) == execution
    assert worker.journal(execution.id) == [entry(0)]


# -- looking again ---------------------------------------------------------------------------------


def test_a_run_can_look_what_its_journal_has_by_now(worker: Worker) -> None:
    execution = worker.start()
    worker.wait(execution, 0)
    worker.wait(execution, 1, "other")
    worker.resolve(worker.target(execution=execution.id, name="payment"))

    loaded = worker.ask(Load(execution.id, 1))

    assert loaded.execution == worker.execution(execution.id)
    assert loaded.execution.wakes == 1
    assert loaded.entries == worker.journal(execution.id)
    assert [promise.name for promise in loaded.promises] == ["other"]


def test_a_run_that_was_taken_over_is_told_when_it_looks(worker: Worker) -> None:
    before, now = taken_over(worker)
    assert worker.ask(Load(before.id, before.fence)) == Lost()
    assert worker.ask(Load(now.id, now.fence)).execution == now
