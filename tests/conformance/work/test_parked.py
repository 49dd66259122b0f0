"""Resolutions that come before their promise: parked, delivered once, and known again."""

import pytest

from oncekey.core.answers import AlreadySettled, Parked, RequestKeyReused, Settled
from oncekey.core.execution import PromiseState
from oncekey.core.model import Link, State
from oncekey.core.ports import Peek
from tests.fixtures.stores import DAY
from tests.fixtures.work import Worker, ref_of, succeeded


def request_key_of(worker: Worker, key: str) -> Peek:
    return Peek(ref_of(worker.tenant, "resolve", key).digest)


def test_an_unknown_key_is_parked(worker: Worker) -> None:
    until = worker.clock.now() + DAY
    assert worker.resolve(worker.target("k"), request_key="r", park="k") == Parked(until)
    record = worker.ask(request_key_of(worker, "r")).record
    assert (record.state, record.link) == (State.SUCCEEDED, None)


def test_the_same_request_is_parked_once(worker: Worker) -> None:
    first = worker.resolve(worker.target("k"), b"1", request_key="r", park="k")
    worker.clock.advance(5)
    again = worker.resolve(worker.target("k"), b"2", request_key="r", park="k")
    assert again == Parked(first.expires_at, again=True)
    assert worker.pending("k").body == b"1"


def test_the_first_that_is_parked_counts(worker: Worker) -> None:
    first = worker.resolve(worker.target("k"), b"1", request_key="r", park="k")
    worker.clock.advance(5)
    second = worker.resolve(worker.target("k"), b"2", request_key="s", park="k")
    assert second == Parked(first.expires_at)

    promise = worker.pending("k")

    assert (promise.body, promise.settled_by) == (b"1", "r")
    told = worker.resolve(worker.target("k"), b"2", request_key="s", park="k")
    assert told == AlreadySettled(promise, again=False, key_new=False)


def test_a_request_that_was_parked_and_delivered_is_the_one_that_settled_it(
    worker: Worker,
) -> None:
    worker.resolve(worker.target("k"), request_key="r", park="k")
    promise = worker.pending("k")
    record = worker.ask(request_key_of(worker, "r")).record
    assert record.link == Link("promise", promise.public_id)
    for target in (worker.target("k"), worker.target(id=promise.id)):
        again = worker.resolve(target, request_key="r", park="k")
        assert again == AlreadySettled(promise, again=True, key_new=False)


def test_what_is_parked_past_its_time_makes_room(worker: Worker) -> None:
    worker.resolve(worker.target("k"), b"1", request_key="r", park="k", park_kept=10)
    worker.clock.advance(10)
    parked = worker.resolve(worker.target("k"), b"2", request_key="s", park="k")
    assert parked == Parked(worker.clock.now() + DAY)
    assert worker.pending("k").settled_by == "s"


@pytest.mark.parametrize("swept", [True, False])
def test_a_request_whose_parking_was_in_vain_is_carried_out_when_it_comes_again(
    worker: Worker, swept: bool
) -> None:
    worker.resolve(worker.target("k"), b"1", request_key="r", park="k", park_kept=10)
    worker.clock.advance(10)
    if swept:
        worker.forget()
    promise = worker.pending("k")
    assert promise.state is PromiseState.PENDING

    answer = worker.resolve(worker.target("k"), b"1", request_key="r", park="k")

    assert isinstance(answer, Settled)
    again = worker.resolve(worker.target("k"), b"1", request_key="r", park="k")
    assert again == AlreadySettled(answer.promise, again=True, key_new=False)


def test_a_request_whose_parking_was_in_vain_is_parked_again(worker: Worker) -> None:
    worker.resolve(worker.target("k"), b"1", request_key="r", park="k", park_kept=10)
    worker.clock.advance(10)
    again = worker.resolve(worker.target("k"), b"1", request_key="r", park="k")
    assert again == Parked(worker.clock.now() + DAY)
    promise = worker.pending("k")
    told = worker.resolve(worker.target("k"), b"1", request_key="r", park="k")
    assert told == AlreadySettled(promise, again=True, key_new=False)


def test_a_request_is_delivered_to_one_promise_only(worker: Worker) -> None:
    """Its promise's key has expired, and another promise has it now."""
    worker.resolve(worker.target("k"), request_key="r", park="k")
    first = worker.pending("k", kept=100)
    worker.clock.advance(100)
    worker.forget()
    again = worker.resolve(worker.target("k"), request_key="r", park="k")
    gone = first._replace(key=None, key_expires_at=None)
    assert again == AlreadySettled(gone, again=True, key_new=False)

    second = worker.pending("k")

    assert second.state is PromiseState.PENDING
    answer = worker.resolve(worker.target("k"), request_key="r", park="k")
    assert answer == RequestKeyReused()
    assert worker.current(second) == second


def test_a_request_for_a_promise_that_is_forgotten_is_not_parked_again(worker: Worker) -> None:
    execution = worker.start(keep=0)
    worker.resolve(worker.target("k"), request_key="r", park="k")
    worker.wait(execution, key="k", kept=1)
    worker.advance(execution, ending=succeeded()._replace(keep=0))
    worker.clock.advance(1)
    worker.forget()
    again = worker.resolve(worker.target("k"), request_key="r", park="k")
    assert isinstance(again, Parked)
    assert again.again
    assert worker.pending("k").state is PromiseState.PENDING


def test_a_request_key_that_parked_is_not_for_another_key(worker: Worker) -> None:
    worker.resolve(worker.target("k"), request_key="r", park="k")
    assert worker.resolve(worker.target("j"), request_key="r", park="j") == RequestKeyReused()
    promise = worker.pending("x")
    assert worker.resolve(worker.target("x"), request_key="r") == RequestKeyReused()
    assert worker.current(promise) == promise


def test_tenants_park_apart(worker: Worker) -> None:
    worker.resolve(worker.target("k"), b"1", park="k")
    other = worker.of("globex")
    assert other.pending("k").state is PromiseState.PENDING
    assert worker.pending("k").state is PromiseState.RESOLVED
