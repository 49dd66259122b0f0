"""Several requests about one execution, and about one key, that go into one group."""

from contextlib import closing
from typing import Any

from oncekey.core.answers import Advanced, Awaited, KeyTaken, Lost
from oncekey.core.execution import Execution, Status
from oncekey.core.work import Await, HandBack
from oncekey.stores.sql import SqlStore
from tests.fixtures.work import Worker, entry, succeeded


def waiting(worker: Worker, execution: Execution, seq: int, *, key: str | None = None) -> Await:
    """What lies down for a promise, if nothing has come by then."""
    advance = worker.advancing(execution, entry(10 + seq), waits=0)
    return worker.awaiting(execution, seq, f"p-{seq}", key=key, advance=advance)


def in_one_group(worker: Worker, requests: list[Any]) -> list[Any]:
    store: Any = worker.caller.store
    if not isinstance(store, SqlStore):
        return worker.caller.ask_all(requests)
    with closing(store._session()) as session:
        return session.commit(requests)


def names_of(worker: Worker, execution: Execution) -> list[str]:
    return [promise.name for promise in worker.promises_of(execution)]


def test_many_that_wait_are_told_so(worker: Worker) -> None:
    executions = [worker.start() for _ in range(20)]
    requests = [
        waiting(worker, each, 0, key=f"k-{place}" if place % 2 else None)
        for place, each in enumerate(executions)
    ]

    answers = in_one_group(worker, requests)

    assert all(isinstance(answer, Awaited) and answer.waits for answer in answers)
    found = [worker.execution(each.id) for each in executions]
    assert {(each.status, each.owner) for each in found} == {(Status.WAITING, 0)}
    assert [worker.journal(each.id) for each in executions] == [[entry(10)]] * 20
    assert [answer.promise.key for answer in answers[:2]] == [None, "k-1"]


def test_one_of_two_waits_whose_key_is_taken_is_not_made(worker: Worker) -> None:
    worker.make(key="taken")
    execution = worker.start()

    free, taken = in_one_group(
        worker, [waiting(worker, execution, 0), waiting(worker, execution, 1, key="taken")]
    )

    assert isinstance(free, Awaited)
    assert isinstance(taken, KeyTaken)
    assert names_of(worker, execution) == ["p-0"]
    # Whoever was told of the refusal goes on: it does not lie there.
    assert worker.execution(execution.id).status is Status.RUNNING


def test_one_key_is_given_to_one_of_a_group(worker: Worker) -> None:
    executions = [worker.start() for _ in range(3)]

    answers = in_one_group(worker, [waiting(worker, each, 0, key="k") for each in executions])

    kinds = [type(answer) for answer in answers]
    assert sorted(kind.__name__ for kind in kinds) == ["Awaited", "KeyTaken", "KeyTaken"]
    lie = {Awaited: Status.WAITING, KeyTaken: Status.RUNNING}
    statuses = [worker.execution(each.id).status for each in executions]
    assert statuses == [lie[kind] for kind in kinds]


def test_a_run_that_was_taken_over_waits_for_nothing_beside_the_one_that_has_it(
    worker: Worker,
) -> None:
    before = worker.start()
    worker.ask(HandBack(((before.id, 1),)))
    (picked,) = worker.pick_up()
    now = picked.execution

    answers = in_one_group(
        worker,
        [
            waiting(worker, before, 0, key="old"),
            worker.advancing(now, entry(20)),
            waiting(worker, now, 1, key="new"),
            worker.advancing(before, entry(21)),
        ],
    )

    assert answers[0] == Lost()
    assert answers[1] == Advanced()
    assert isinstance(answers[2], Awaited)
    assert answers[3] == Lost()
    assert names_of(worker, now) == ["p-1"]
    assert [each.seq for each in worker.journal(now.id)] == [11, 20]
    assert worker.promise("old") is None


def test_a_wait_that_is_told_twice_is_made_once(worker: Worker) -> None:
    execution = worker.start()
    request = waiting(worker, execution, 0, key="k")
    first = worker.ask(request)

    again = in_one_group(worker, [request, worker.advancing(worker.start(), entry(0))])[0]

    assert again == first
    assert names_of(worker, execution) == ["p-0"]
    assert worker.execution(execution.id).status is Status.WAITING


def test_a_wait_whose_resolution_is_parked_is_settled_among_others(worker: Worker) -> None:
    worker.resolve(worker.target("early"), park="early")
    executions = [worker.start(), worker.start()]

    early, late = in_one_group(
        worker,
        [
            waiting(worker, executions[0], 0, key="early"),
            waiting(worker, executions[1], 0, key="late"),
        ],
    )

    assert early.entry is not None
    assert early.entry.body == b'"paid"'
    assert (early.waits, late.waits) == (False, True)
    assert worker.execution(executions[0].id).status is Status.RUNNING
    assert len(worker.journal(executions[0].id)) == 2


def test_some_wait_while_others_end(worker: Worker) -> None:
    executions = [worker.start(key=f"k-{number}") for number in range(10)]
    ending = succeeded(keyed=True, plain=True)

    answers = in_one_group(
        worker,
        [
            waiting(worker, each, 0)
            if place % 2
            else worker.advancing(each, entry(0), ending=ending)
            for place, each in enumerate(executions)
        ],
    )

    assert [type(answer) for answer in answers] == [Advanced, Awaited] * 5
    statuses = [worker.execution(each.id).status for each in executions]
    assert statuses == [Status.SUCCEEDED, Status.WAITING] * 5
