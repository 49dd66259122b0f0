"""Starts: one execution per key, whoever asks and how often."""

import pytest

from oncekey.core.answers import Advanced, Existing, Started
from oncekey.core.execution import Execution, Sort, Status
from oncekey.core.model import NO_FINGERPRINT, Link, Record, State
from oncekey.core.ports import Found, Gone, Held, Peek
from oncekey.core.work import ENGINE, FindExecution, ListExecutions, Withdraw
from tests.fixtures.stores import DAY
from tests.fixtures.work import Worker, entry, ref_of, succeeded

OTHER = b"o" * 16


def owner_of(worker: Worker) -> int:
    """The memory store knows one process only."""
    return getattr(worker.caller.store, "owner", 1)


def record_of(worker: Worker, key: str) -> Record | None:
    found = worker.ask(Peek(ref_of(worker.tenant, "start", key).digest))
    if found is None:
        return None
    assert isinstance(found, Found)
    assert not found.lapsed
    return found.record


def all_of(worker: Worker) -> list[Execution]:
    found: list[Execution] = worker.ask(ListExecutions(worker.tenant))
    return found


def test_a_running_start_is_the_askers(worker: Worker) -> None:
    request = worker.starting(input=b'{"n": 1}', due_at=worker.clock.now() + 5)

    assert worker.ask(request) == Started(owner_of(worker))

    kept = request.execution._replace(owner=owner_of(worker))
    assert worker.execution(kept.id) == kept


def test_a_ready_start_is_nobodys(worker: Worker) -> None:
    request = worker.starting(status=Status.READY, sort=Sort.TASK)

    assert worker.ask(request) == Started(0)

    assert worker.execution(request.execution.id) == request.execution


@pytest.mark.parametrize("sort, kind", [(Sort.WORKFLOW, "workflow"), (Sort.TASK, "task")])
def test_a_key_stands_for_its_execution_and_does_not_lapse(
    worker: Worker, sort: Sort, kind: str
) -> None:
    execution = worker.start(key="k", sort=sort, frees_key=True)

    record = record_of(worker, "k")

    assert record is not None
    assert (record.id, record.owner, record.state) == (execution.id, ENGINE, State.IN_PROGRESS)
    assert record.link == Link(kind, execution.public_id)  # type: ignore[arg-type]
    assert (execution.key, execution.frees_key) == ("k", True)


def test_a_key_that_is_taken_names_what_has_it(worker: Worker) -> None:
    execution = worker.start(key="k")
    again = worker.starting("other", "k", fingerprint=OTHER)

    answer = worker.ask(again)

    assert isinstance(answer, Existing)
    assert answer.record.fingerprint == NO_FINGERPRINT
    assert answer.execution == execution
    assert all_of(worker) == [execution]


def test_one_group_starts_a_key_once(worker: Worker) -> None:
    requests = [worker.starting(key="k") for _ in range(5)]

    answers = worker.caller.ask_all(requests)

    started = [r for r, a in zip(requests, answers, strict=True) if isinstance(a, Started)]
    existing = [answer for answer in answers if not isinstance(answer, Started)]
    assert len(started) == 1
    assert {answer.execution.id for answer in existing} == {started[0].execution.id}
    assert len(all_of(worker)) == 1


def test_another_process_finds_the_key_taken(first: Worker, second: Worker) -> None:
    execution = first.start(key="k")

    answer = second.ask(second.starting(key="k"))

    assert isinstance(answer, Existing)
    assert answer.execution == execution
    assert execution.owner == owner_of(first) != owner_of(second)


def test_tenants_have_keys_of_their_own(worker: Worker) -> None:
    other = worker.of("other")
    ours, theirs = worker.start(key="k"), other.start(key="k")

    assert ours.id != theirs.id
    assert other.ask(FindExecution("other", ours.id)) is None


def test_a_group_of_everything_is_answered_one_by_one(worker: Worker) -> None:
    known = worker.start(key="known")
    claimed = worker.caller.insert("claimed")
    worker.ask(claimed)
    new, plain = worker.starting(key="new", input=b"[1]"), worker.starting(status=Status.READY)

    answers = worker.caller.ask_all(
        [
            worker.caller.insert("plain"),
            new,
            worker.caller.settle(claimed),
            worker.starting(key="known"),
            worker.advancing(known, entry(0)),
            plain,
            FindExecution("acme", known.id),
        ]
    )

    assert answers[:3] == [Held(1), Started(owner_of(worker)), True]
    assert answers[3].execution.id == known.id
    assert answers[4:] == [Advanced(), Started(0), known]
    assert worker.execution(new.execution.id).input == b"[1]"
    assert worker.journal(known.id) == [entry(0)]


def test_many_starts_keep_their_own_bytes(worker: Worker) -> None:
    keys = [f"k-{number}" if number % 2 else None for number in range(40)]
    requests = [worker.starting(key=key, input=b"x" * number) for number, key in enumerate(keys)]

    assert set(worker.caller.ask_all(requests)) == {Started(owner_of(worker))}

    found = [worker.execution(request.execution.id) for request in requests]
    assert [each.input for each in found] == [b"x" * number for number in range(40)]
    assert [each.key for each in found] == keys


@pytest.mark.parametrize("key", [None, "k"])
def test_a_start_that_is_repeated_has_started(worker: Worker, key: str | None) -> None:
    """A commit nobody was sure of went through."""
    request = worker.starting(key=key)
    worker.ask(request)

    assert worker.ask(request) == Started(owner_of(worker))
    assert len(all_of(worker)) == 1


@pytest.mark.parametrize("key", [None, "k"])
def test_a_number_that_is_taken_is_refused_and_the_key_stays_free(
    worker: Worker, key: str | None
) -> None:
    taken = worker.start()
    worker.clock.advance(1)

    assert worker.ask(worker.starting(key=key, id=taken.id)) == Gone()

    assert worker.execution(taken.id) == taken
    assert worker.start(key="k").key == "k"


def test_a_number_whose_claim_is_taken_is_refused(worker: Worker) -> None:
    taken = worker.start(key="one")

    assert worker.ask(worker.starting(key="two", id=taken.id)) == Gone()

    assert record_of(worker, "two") is None
    assert worker.execution(taken.id).key == "one"


# -- keys past their time ------------------------------------------------------------------------


def test_a_key_is_used_anew_when_what_it_stood_for_is_past(worker: Worker) -> None:
    old = worker.start(key="k")
    worker.advance(old, ending=succeeded(keyed=True, plain=True))
    worker.clock.advance(DAY)

    new = worker.start(key="k", fingerprint=OTHER)

    record = record_of(worker, "k")
    assert record is not None
    assert (record.id, record.outcome, record.fingerprint) == (new.id, None, OTHER)


def test_a_key_is_not_past_while_its_execution_goes_on(worker: Worker) -> None:
    running = worker.start(key="k", kept=1)
    worker.clock.advance(DAY)

    answer = worker.ask(worker.starting(key="k"))

    assert isinstance(answer, Existing)
    assert answer.execution == running


def test_a_sweep_leaves_the_keys_of_what_goes_on(worker: Worker) -> None:
    running = worker.start(key="k", kept=1)
    worker.clock.advance(DAY)

    assert worker.caller.store.sweep(worker.clock.now(), 10) == 0

    record = record_of(worker, "k")
    assert record is not None
    assert record.id == running.id


# -- undone --------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [Status.READY, Status.RUNNING])
def test_a_start_nobody_was_told_of_is_undone_with_its_key(worker: Worker, status: Status) -> None:
    execution = worker.start(key="k", status=status)

    assert worker.ask(Withdraw(execution.id)) is True

    assert all_of(worker) == []
    assert record_of(worker, "k") is None
    assert worker.ask(Withdraw(execution.id)) is False


def test_a_start_with_a_step_is_not_undone(worker: Worker) -> None:
    execution = worker.start(key="k")
    worker.advance(execution, entry(0))

    assert worker.ask(Withdraw(execution.id)) is False
    assert worker.execution(execution.id) == execution


def test_a_start_that_waits_for_something_is_not_undone(worker: Worker) -> None:
    execution = worker.start()
    worker.wait(execution)

    assert worker.ask(Withdraw(execution.id)) is False


def test_a_start_that_was_picked_up_is_not_undone(worker: Worker) -> None:
    execution = worker.start(status=Status.READY)
    assert len(worker.pick_up()) == 1

    assert worker.ask(Withdraw(execution.id)) is False


def test_a_start_that_runs_in_another_process_is_not_undone(first: Worker, second: Worker) -> None:
    execution = first.start()

    assert second.ask(Withdraw(execution.id)) is False
    assert first.ask(Withdraw(execution.id)) is True
