"""Executions that start others: those they call and wait for, and those they only start."""

from oncekey.core.answers import Advanced, Awaited, Existing, Lost, Spawned, Started, Woken
from oncekey.core.execution import Entry, Execution, PromiseKind, PromiseState, Sort, Status, Step
from oncekey.core.ports import Gone, Peek
from oncekey.core.work import PickUp, Spawn
from tests.fixtures.work import FAILURE, PAUSED, Worker, entry, failed, ref_of, succeeded

OTHER = b"o" * 16


# -- children ----------------------------------------------------------------------------------


def called(worker: Worker, parent: Execution, key: str | None = None, **fields: object) -> Awaited:
    start = worker.starting("child", key, **fields)
    answer = worker.wait(
        parent,
        0,
        "child",
        PromiseKind.CALL,
        start=start,
        advance=worker.advancing(parent, waits=parent.wakes),
    )
    assert isinstance(answer, Awaited)
    return answer


def test_a_call_starts_its_child_and_waits_for_its_end(worker: Worker) -> None:
    parent = worker.start()
    answer = called(worker, parent)
    assert answer.started is not None
    assert (answer.promise.target, answer.child, answer.waits) == (answer.started, None, True)
    child = worker.execution(answer.started)
    assert (child.name, child.status) == ("child", Status.RUNNING)

    ended = worker.advance(child, ending=succeeded(b"42")).ended

    [told] = worker.journal(parent.id)
    assert ended == (Woken(parent.id, True, told, answer.promise.id),)
    assert (told.step, told.name, told.failed, told.body) == (Step.CALL, "child", False, b"42")
    settled = worker.promise(id=answer.promise.id)
    assert settled is not None
    assert settled.settled_by == child.public_id


def test_an_ending_that_looks_plain_is_told_to_callers_all_the_same(worker: Worker) -> None:
    answer = called(worker, worker.start())
    assert answer.started is not None
    child = worker.execution(answer.started)
    assert len(worker.advance(child, ending=succeeded(plain=True)).ended) == 1


def test_a_child_that_fails_rejects(worker: Worker) -> None:
    parent = worker.start()
    answer = called(worker, parent)
    assert answer.started is not None
    worker.advance(worker.execution(answer.started), ending=failed())
    [told] = worker.journal(parent.id)
    assert (told.failed, told.body) == (True, FAILURE)


def test_a_child_that_pauses_tells_nobody(worker: Worker) -> None:
    parent = worker.start()
    answer = called(worker, parent)
    assert answer.started is not None
    assert worker.advance(worker.execution(answer.started), ending=PAUSED) == Advanced()
    assert worker.execution(parent.id).status is Status.WAITING


def test_several_wait_for_one_child_by_its_key(worker: Worker) -> None:
    first, second = worker.start(), worker.start()
    one = called(worker, first, "c")
    two = called(worker, second, "c")
    assert one.started is not None
    assert two.started is None
    assert isinstance(two.child, Existing)
    assert two.child.execution == worker.execution(one.started)
    assert two.promise.target == one.started

    ended = worker.advance(worker.execution(one.started), ending=succeeded(b"42")).ended

    assert {woken.execution for woken in ended} == {first.id, second.id}
    assert [worker.journal(each.id)[0].body for each in (first, second)] == [b"42", b"42"]


def test_a_child_that_is_over_answers_at_once(worker: Worker) -> None:
    child = worker.start("child", "c")
    worker.advance(child, ending=succeeded(b"42", keyed=True))
    parent = worker.start()
    answer = called(worker, parent, "c")
    assert (answer.waits, answer.started) == (False, None)
    assert answer.promise.state is PromiseState.RESOLVED
    assert [answer.entry] == worker.journal(parent.id)
    assert answer.entry is not None
    assert answer.entry.body == b"42"


def test_a_task_that_is_over_is_told_of_by_its_own_id(worker: Worker) -> None:
    task = worker.start("child", "c", sort=Sort.TASK)
    worker.advance(task, ending=succeeded(keyed=True))
    answer = called(worker, worker.start(), "c", sort=Sort.TASK)
    assert answer.promise.settled_by == task.public_id


def test_a_key_used_with_another_input_makes_nothing(worker: Worker) -> None:
    child = worker.start("child", "c")
    parent = worker.start()
    answer = called(worker, parent, "c", fingerprint=OTHER)
    assert answer.child is not None
    assert answer.child.execution == child
    assert (answer.started, answer.promise.target, answer.entry) == (None, None, None)
    assert worker.promises_of(parent) == []
    assert worker.execution(parent.id).status is Status.RUNNING


def test_a_call_that_is_asked_for_again_tells_of_the_same_child(worker: Worker) -> None:
    parent = worker.start()
    request = worker.awaiting(
        parent, 0, "child", PromiseKind.CALL, start=worker.starting("child", "c")
    )
    first = worker.ask(request)
    assert worker.ask(request) == first
    assert first.started is not None

    other = worker.start()
    request = worker.awaiting(
        other, 0, "child", PromiseKind.CALL, start=worker.starting("child", "c")
    )
    second = worker.ask(request)
    assert second.child is not None
    assert worker.ask(request) == second


def test_a_parent_that_is_over_is_not_told(worker: Worker) -> None:
    parent = worker.start()
    answer = called(worker, parent)
    worker.control("cancel", parent)
    assert answer.started is not None
    assert worker.advance(worker.execution(answer.started), ending=succeeded()) == Advanced()
    assert worker.journal(parent.id) == []


# -- spawning ----------------------------------------------------------------------------------


def spawning(worker: Worker, parent: Execution, key: str | None = None, **fields: object) -> Spawn:
    begun = Entry(1, Step.START, "child", b"s" * 16, False, b"null", 1, 5, 5)
    start = worker.starting("child", key, **fields)
    return Spawn(worker.advancing(parent, entry(0)), start, begun)


def test_a_spawned_execution_is_started_and_journaled(worker: Worker) -> None:
    parent = worker.start()
    request = spawning(worker, parent, status=Status.READY)
    answer = worker.ask(request)
    child = worker.execution(request.start.execution.id)
    assert child.status is Status.READY
    body = f'"{child.public_id}"'.encode()
    assert answer == Spawned(request.entry._replace(body=body), is_new=True)
    assert worker.journal(parent.id) == [entry(0), answer.entry]
    assert worker.ask(request) == answer


def test_a_spawn_finds_the_execution_that_has_the_key(worker: Worker) -> None:
    child = worker.start("child", "c")
    parent = worker.start()
    request = spawning(worker, parent, "c")
    answer = worker.ask(request)
    assert answer.existing.execution == child
    assert not answer.is_new
    assert answer.entry.body == f'"{child.public_id}"'.encode()
    assert worker.journal(parent.id) == [entry(0), answer.entry]
    assert worker.ask(request) == answer


def test_a_spawn_with_a_key_of_another_input_is_not_journaled(worker: Worker) -> None:
    worker.start("child", "c")
    parent = worker.start()
    answer = worker.ask(spawning(worker, parent, "c", fingerprint=OTHER))
    assert not answer.is_journaled
    assert worker.journal(parent.id) == [entry(0)]


def test_a_stale_run_spawns_nothing(worker: Worker) -> None:
    parent = worker.start()
    request = spawning(worker, parent._replace(fence=3), "c")
    assert worker.ask(request) == Lost()
    assert worker.ask(Peek(ref_of("acme", "start", "c").digest)) is None
    assert worker.ask(PickUp(((Sort.WORKFLOW, "child"),), 5, 0)) == []


def test_a_spawn_with_a_number_that_is_taken_is_not_journaled(worker: Worker) -> None:
    parent, other = worker.start(), worker.start("other")
    request = spawning(worker, parent, "c")
    assert request.start.insert is not None
    start = request.start._replace(
        execution=request.start.execution._replace(id=other.id),
        insert=request.start.insert._replace(id=other.id),
    )
    assert worker.ask(request._replace(start=start)) == Gone()
    assert worker.journal(parent.id) == [entry(0)]
    assert worker.execution(other.id) == other
    assert isinstance(worker.ask(worker.starting("child", "c")), Started)
