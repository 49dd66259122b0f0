"""Promises settled from outside, by id, key, token or name: each request once, parked if early."""

import pytest

from oncekey.core.answers import (
    Advanced,
    AlreadySettled,
    Awaited,
    KeyExpired,
    KeyTaken,
    Lost,
    RequestKeyReused,
    Settled,
    Woken,
)
from oncekey.core.execution import (
    Entry,
    Execution,
    Promise,
    PromiseKind,
    PromiseState,
    Sort,
    Status,
    Step,
)
from oncekey.core.model import Link, State
from oncekey.core.ports import Gone, Insert, Peek, Purge
from oncekey.core.work import ENGINE, FindPromise, Target
from tests.fixtures.stores import DAY
from tests.fixtures.work import FAILURE, PAUSED, Worker, ref_of, succeeded

TOKEN = b"t" * 32
REJECTED = PromiseState.REJECTED
RESOLVED = PromiseState.RESOLVED


def request_key_of(worker: Worker, key: str) -> Peek:
    return Peek(ref_of(worker.tenant, "resolve", key).digest)


# -- made by the API ---------------------------------------------------------------------------


def test_a_promise_without_an_execution(worker: Worker) -> None:
    request = worker.making("payment", "k", due_at=worker.clock.now() + 50)
    key = {"key": "k", "key_expires_at": worker.clock.now() + DAY}
    assert worker.ask(request) == Awaited(request.promise._replace(**key))
    assert worker.promise("k") == request.promise._replace(**key)
    assert request.promise.public_id == f"pr_{request.promise.id:016x}:payment"


def test_a_key_that_is_taken(worker: Worker) -> None:
    first = worker.pending("k")
    assert worker.make("other", "k", token=TOKEN) == KeyTaken(first)
    assert worker.promise(token=TOKEN) is None


def test_a_commit_nobody_heard_of_made_the_promise(worker: Worker) -> None:
    request = worker.making("payment", "k")
    assert worker.ask(request) == worker.ask(request)
    worker.resolve(worker.target("k"))
    assert worker.ask(request).promise.state is RESOLVED


def test_a_number_somebody_else_has_drawn(worker: Worker) -> None:
    first = worker.pending("a")
    clash = worker.making("other", "b")
    assert clash.insert is not None
    number = worker.start().id
    other = worker.wait(worker.execution(number)).promise
    for taken in (first.id, other.id):
        clash = clash._replace(
            promise=clash.promise._replace(id=taken), insert=clash.insert._replace(id=taken)
        )
        assert worker.ask(clash) == Gone()
        assert worker.promise("b") is None
    assert worker.promise("a") == first
    assert isinstance(worker.make("other", "b"), Awaited)


def test_a_parked_resolution_settles_a_promise_as_it_is_made(worker: Worker) -> None:
    worker.resolve(worker.target("k"), b"7", request_key="r", park="k")
    made = worker.pending("k")
    assert (made.state, made.body, made.settled_by) == (RESOLVED, b"7", "r")
    assert worker.current(made) == made


# -- settling ----------------------------------------------------------------------------------


def every_way(worker: Worker, execution: Execution | None, promise: Promise) -> list[Target]:
    ways = [worker.target("k"), worker.target(token=TOKEN), worker.target(id=promise.id)]
    if execution is None:
        return [*ways, worker.target(id=promise.id, name="payment")]
    return [*ways, worker.target(execution=execution.id, name="payment")]


@pytest.mark.parametrize("way", range(4))
@pytest.mark.parametrize("alone", [True, False])
def test_a_promise_is_settled_by_whoever_can_name_it(worker: Worker, way: int, alone: bool) -> None:
    execution = None if alone else worker.start()
    if execution is None:
        promise = worker.pending("k", token=TOKEN)
    else:
        promise = worker.wait(execution, 3, key="k", token=TOKEN).promise
    worker.clock.advance(5)

    answer = worker.resolve(every_way(worker, execution, promise)[way], b"9", request_key="r")

    now = worker.clock.now()
    settled = promise._replace(state=RESOLVED, body=b"9", settled_by="r", settled_at=now)
    assert worker.current(promise) == settled
    if execution is None:
        assert answer == Settled(settled, None)
        return
    told = Entry(3, Step.PROMISE, "payment", b"p" * 16, False, b"9", 1, promise.created_at, now)
    assert answer == Settled(settled, Woken(execution.id, False, told, promise.id))
    assert worker.journal(execution.id) == [told]
    assert worker.execution(execution.id).wakes == 1


def test_a_rejection_is_a_failure_in_the_journal(worker: Worker) -> None:
    execution = worker.start()
    worker.wait(execution, key="k")
    answer = worker.resolve(worker.target("k"), FAILURE, state=REJECTED)
    assert answer.promise.state is REJECTED
    [told] = worker.journal(execution.id)
    assert (told.failed, told.body) == (True, FAILURE)


def test_the_request_key_is_a_settled_claim_that_names_the_promise(worker: Worker) -> None:
    promise = worker.pending("k")
    worker.resolve(worker.target("k"), request_key="r")
    record = worker.ask(request_key_of(worker, "r")).record
    assert (record.owner, record.state) == (ENGINE, State.SUCCEEDED)
    assert record.link == Link("promise", promise.public_id)
    assert record.expires_at == worker.clock.now() + DAY


def test_without_a_request_key_the_first_counts_all_the_same(worker: Worker) -> None:
    promise = worker.pending("k")
    first = worker.resolve(worker.target("k"), b"1").promise
    assert worker.resolve(worker.target("k"), b"2") == AlreadySettled(first)
    assert worker.current(promise).body == b"1"


def test_the_same_request_key_again(worker: Worker) -> None:
    worker.pending("k")
    first = worker.resolve(worker.target("k"), b"1", request_key="r").promise
    again = worker.resolve(worker.target("k"), b"1", request_key="r")
    assert again == AlreadySettled(first, again=True, key_new=False)
    assert worker.resolve(worker.target(id=first.id), b"2", request_key="r") == again


def test_another_request_key(worker: Worker) -> None:
    worker.pending("k")
    first = worker.resolve(worker.target("k"), b"1", request_key="r").promise
    other = worker.resolve(worker.target("k"), b"2", request_key="s")
    assert other == AlreadySettled(first)
    assert first.settled_by == "r"
    again = worker.resolve(worker.target("k"), b"2", request_key="s")
    assert again == AlreadySettled(first, again=False, key_new=False)


def test_a_commit_nobody_heard_of_settled_it(worker: Worker) -> None:
    worker.pending("k")
    request = worker.resolving(worker.target("k"), request_key="r")
    first = worker.ask(request).promise
    assert worker.ask(request) == AlreadySettled(first, again=True)


def test_a_request_key_that_is_forgotten_has_settled_it_still(worker: Worker) -> None:
    worker.pending("k")
    first = worker.resolve(worker.target("k"), request_key="r", kept=10).promise
    worker.clock.advance(10)
    again = worker.resolve(worker.target("k"), request_key="r")
    assert again == AlreadySettled(first, again=True)


def test_a_request_key_of_another_promise(worker: Worker) -> None:
    worker.pending("k")
    other = worker.pending("j")
    worker.resolve(worker.target("k"), request_key="r")
    assert worker.resolve(worker.target("j"), request_key="r") == RequestKeyReused()
    assert worker.current(other) == other
    assert worker.resolve(worker.target("x"), request_key="r", park="x") == RequestKeyReused()
    assert worker.pending("x").state is PromiseState.PENDING


def test_a_request_key_whose_number_is_taken_settles_nothing(worker: Worker) -> None:
    promise = worker.pending("k")
    request = worker.resolving(worker.target("k"), request_key="r")
    assert isinstance(request.insert, Insert)
    clash = request._replace(insert=request.insert._replace(id=promise.id))
    assert worker.ask(clash) == Gone()
    assert worker.current(promise) == promise


def test_an_execution_that_waited_is_ready(worker: Worker) -> None:
    execution = worker.start()
    worker.wait(execution, key="k", advance=worker.advancing(execution, waits=0))
    assert worker.resolve(worker.target("k")).woken.ready
    assert worker.execution(execution.id).status is Status.READY


def test_a_process_may_take_what_it_wakes(worker: Worker) -> None:
    execution = worker.start()
    worker.wait(execution, key="k", advance=worker.advancing(execution, waits=0))
    request = worker.resolving(worker.target("k"))._replace(adopt=((Sort.WORKFLOW, "order"),))

    woken = worker.ask(request).woken

    [told] = worker.journal(execution.id)
    assert woken == Woken(execution.id, False, told, woken.promise, fence=2, wakes=1)
    taken = worker.execution(execution.id)
    assert (taken.status, taken.fence, taken.wakes) == (Status.RUNNING, 2, 1)
    assert worker.advance(taken, ending=succeeded()) == Advanced()
    assert worker.advance(execution) == Lost()


@pytest.mark.parametrize("name, lies", [("other", True), ("order", False)])
def test_a_process_takes_only_what_waits_and_what_it_knows(
    worker: Worker, name: str, lies: bool
) -> None:
    execution = worker.start()
    advance = worker.advancing(execution, waits=0 if lies else None)
    worker.wait(execution, key="k", advance=advance)
    places = ((Sort.WORKFLOW, name), (Sort.TASK, "order"))
    request = worker.resolving(worker.target("k"))._replace(adopt=places)
    woken = worker.ask(request).woken
    assert (woken.ready, woken.fence) == (lies, 0)
    assert worker.execution(execution.id).fence == 1


def test_a_paused_execution_is_told_but_stays_paused(worker: Worker) -> None:
    execution = worker.start()
    worker.wait(execution, key="k")
    worker.advance(execution, ending=PAUSED)
    woken = worker.resolve(worker.target("k")).woken
    assert not woken.ready
    paused = worker.execution(execution.id)
    assert (paused.status, paused.wakes) == (Status.PAUSED, 1)
    assert worker.journal(execution.id) == [woken.entry]


# -- what is over, unknown, or somebody else's -------------------------------------------------


def test_what_timed_out_stays_so(worker: Worker) -> None:
    promise = worker.pending("k", due_at=worker.clock.now())
    worker.due()
    late = worker.resolve(worker.target("k"), request_key="r", park="k")
    assert late == AlreadySettled(worker.current(promise))
    assert late.promise.state is PromiseState.TIMED_OUT
    again = worker.resolve(worker.target("k"), request_key="r", park="k")
    assert again == AlreadySettled(late.promise, again=False, key_new=False)


def test_what_was_cancelled_with_its_execution_stays_so(worker: Worker) -> None:
    execution = worker.start()
    promise = worker.wait(execution, key="k").promise
    worker.advance(execution, ending=succeeded())
    answer = worker.resolve(worker.target(id=promise.id))
    assert answer.promise.state is PromiseState.CANCELLED
    assert worker.journal(execution.id) == []


def test_an_expired_key_names_nothing_any_more(worker: Worker) -> None:
    promise = worker.pending("k", kept=100)
    worker.clock.advance(99)
    assert worker.resolve(worker.target("x")) is None
    worker.clock.advance(1)
    assert worker.resolve(worker.target("k"), request_key="r", park="k") == KeyExpired(promise)
    assert worker.ask(request_key_of(worker, "r")) is None
    assert isinstance(worker.resolve(worker.target(id=promise.id), request_key="r"), Settled)


def test_a_request_that_settled_it_is_known_when_the_key_has_expired(worker: Worker) -> None:
    worker.pending("k", kept=100)
    first = worker.resolve(worker.target("k"), request_key="r", park="k").promise
    worker.clock.advance(100)
    again = worker.resolve(worker.target("k"), request_key="r", park="k")
    assert again == AlreadySettled(first, again=True, key_new=False)
    assert worker.resolve(worker.target("k"), request_key="s", park="k") == KeyExpired(first)

    worker.forget()

    again = worker.resolve(worker.target("k"), request_key="r", park="k")
    gone = first._replace(key=None, key_expires_at=None)
    assert again == AlreadySettled(gone, again=True, key_new=False)


def test_unknown_ones_are_not_found(worker: Worker) -> None:
    promise = worker.pending("k")
    for target in (
        worker.target("x"),
        worker.target(id=promise.id + 1),
        worker.target(id=promise.id, name="other"),
        worker.target(token=TOKEN),
        worker.target(execution=promise.id, name="payment"),
    ):
        assert worker.resolve(target, request_key="r") is None
        assert worker.ask(request_key_of(worker, "r")) is None


def test_other_tenants_see_nothing(worker: Worker) -> None:
    execution = worker.start()
    promise = worker.wait(execution, key="k", token=TOKEN).promise
    other = worker.of("globex")
    digest = ref_of("acme", "promise", "k").digest
    for target in (
        other.target("k"),
        other.target(digest=digest),
        other.target(token=TOKEN),
        other.target(id=promise.id),
        other.target(execution=execution.id, name="payment"),
    ):
        assert other.resolve(target) is None
        assert worker.ask(FindPromise(target)) is None
    assert worker.current(promise) == promise


@pytest.mark.parametrize("kind", list(PromiseKind)[1:])
def test_only_promises_are_settled_from_outside(worker: Worker, kind: PromiseKind) -> None:
    execution = worker.start()
    promise = worker.wait(execution, 0, "p", kind, topic="p").promise
    assert worker.resolve(worker.target(id=promise.id)) is None
    assert worker.current(promise).state is PromiseState.PENDING


def test_a_purged_key_names_nothing(worker: Worker) -> None:
    promise = worker.pending("k")
    assert worker.ask(Purge(ref_of("acme", "promise", "k").digest)) is True
    assert worker.resolve(worker.target("k")) is None
    assert worker.current(promise) == promise._replace(key=None, key_expires_at=None)
