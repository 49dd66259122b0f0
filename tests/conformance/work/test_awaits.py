"""What an execution waits for: made once per position, with its key, its token and its child."""

from oncekey.core.answers import Advanced, Awaited, KeyTaken, Lost, Parked, Settled, Woken
from oncekey.core.execution import (
    BODY,
    Entry,
    Execution,
    Promise,
    PromiseKind,
    PromiseState,
    Sort,
    Status,
    Step,
)
from oncekey.core.model import Link
from oncekey.core.ports import Gone, Peek
from oncekey.core.work import ENGINE, AddToken, Load
from tests.fixtures.stores import DAY
from tests.fixtures.work import FAILURE, Worker, entry, failed, ref_of, succeeded

OTHER = b"o" * 16
TOKEN = b"t" * 32


def waiting(worker: Worker, **fields: object) -> Execution:
    """One that lies down for the promise `payment`."""
    execution = worker.start()
    request = worker.awaiting(
        execution, advance=worker.advancing(execution, waits=execution.wakes), **fields
    )
    assert worker.ask(request).waits
    return worker.execution(execution.id)


# -- making ------------------------------------------------------------------------------------


def test_a_promise_is_made_at_its_position(worker: Worker) -> None:
    execution = worker.start()
    request = worker.awaiting(execution, 3, key="stripe:1", due_at=worker.clock.now() + 60)

    answer = worker.ask(request)

    key = {"key": "stripe:1", "key_expires_at": worker.clock.now() + DAY}
    assert answer == Awaited(request.promise._replace(**key))
    assert worker.promise("stripe:1") == answer.promise
    assert worker.promise(id=answer.promise.id) == answer.promise
    assert worker.promise(execution=execution.id, name="payment") == answer.promise
    assert answer.promise.public_id == f"{execution.public_id}:payment"


def test_the_key_of_a_promise_is_a_claim_the_ledger_sees(worker: Worker) -> None:
    execution = worker.start()
    promise = worker.wait(execution, key="stripe:1").promise
    found = worker.ask(Peek(ref_of("acme", "promise", "stripe:1").digest))
    assert (found.record.id, found.record.owner, found.lapsed) == (promise.id, ENGINE, False)
    assert found.record.link == Link("promise", promise.public_id)


def test_what_was_done_before_is_journaled_with_it(worker: Worker) -> None:
    execution = worker.start()
    worker.wait(execution, 1, advance=worker.advancing(execution, entry(0)))
    assert worker.journal(execution.id) == [entry(0)]


def test_a_stale_run_makes_nothing(worker: Worker) -> None:
    execution = worker.start()
    stale = execution._replace(fence=7)
    request = worker.awaiting(stale, key="k", advance=worker.advancing(stale, entry()))
    assert worker.ask(request) == Lost()
    assert worker.promises_of(execution) == []
    assert worker.journal(execution.id) == []
    assert worker.ask(Peek(ref_of("acme", "promise", "k").digest)) is None


def test_an_execution_that_is_over_waits_for_nothing(worker: Worker) -> None:
    execution = worker.start()
    worker.advance(execution, ending=succeeded())
    assert worker.wait(execution) == Lost()


def test_the_same_position_again_is_the_same_promise(worker: Worker) -> None:
    execution = worker.start()
    first = worker.wait(execution, 0, key="k").promise
    again = worker.wait(execution, 0, key="k", advance=worker.advancing(execution, entry(9)))
    assert again == Awaited(first)
    assert worker.promises_of(execution) == [first]
    assert worker.journal(execution.id) == [entry(9)]


def test_the_same_position_again_may_be_settled_by_then(worker: Worker) -> None:
    execution = worker.start()
    first = worker.wait(execution, 0).promise
    worker.resolve(worker.target(id=first.id), b"5")
    again = worker.wait(execution, 0)
    assert again.promise.state is PromiseState.RESOLVED
    assert [again.entry] == worker.journal(execution.id)


def test_a_name_is_used_once_within_an_execution(worker: Worker) -> None:
    execution = worker.start()
    first = worker.wait(execution, 0, "payment").promise
    assert worker.wait(execution, 1, "payment", key="k") == KeyTaken(first)
    assert worker.ask(Peek(ref_of("acme", "promise", "k").digest)) is None
    assert isinstance(worker.wait(worker.start(), 1, "payment", key="k"), Awaited)


def test_a_number_somebody_else_has_drawn_makes_nothing(worker: Worker) -> None:
    taken = worker.make().promise
    execution = worker.start()
    start = worker.starting("child", "child-key")
    request = worker.awaiting(execution, key="k", kind=PromiseKind.CALL, start=start)
    clash = request._replace(promise=request.promise._replace(id=taken.id))

    assert worker.ask(clash) == Gone()

    assert worker.promises_of(execution) == []
    assert worker.ask(Peek(ref_of("acme", "promise", "k").digest)) is None
    assert worker.ask(Peek(ref_of("acme", "start", "child-key").digest)) is None
    assert worker.promise(id=taken.id) == taken


# -- keys --------------------------------------------------------------------------------------


def test_a_key_of_another_promise_is_taken(worker: Worker) -> None:
    holder = worker.make("other", "k").promise
    execution = worker.start()
    request = worker.awaiting(execution, key="k", advance=worker.advancing(execution, entry()))
    assert worker.ask(request) == KeyTaken(holder)
    assert worker.promises_of(execution) == []
    assert worker.journal(execution.id) == [entry()]


def test_a_resolved_promise_keeps_its_key(worker: Worker) -> None:
    holder = worker.make("other", "k").promise
    worker.resolve(worker.target("k"))
    taken = worker.wait(worker.start(), key="k")
    assert taken == KeyTaken(worker.promise(id=holder.id))


def test_an_expired_key_is_new(worker: Worker) -> None:
    old = worker.make("other", "k", kept=100).promise
    worker.clock.advance(100)
    new = worker.wait(worker.start(), key="k")
    assert isinstance(new, Awaited)
    assert worker.promise("k") == new.promise
    assert worker.promise(id=old.id) == old._replace(key=None, key_expires_at=None)


def test_a_promise_that_timed_out_gives_its_key_way(worker: Worker) -> None:
    worker.make("other", "k", due_at=worker.clock.now())
    worker.due()
    assert isinstance(worker.wait(worker.start(), key="k"), Awaited)


def test_a_promise_of_an_execution_that_is_over_gives_its_key_way(worker: Worker) -> None:
    execution = worker.start()
    worker.wait(execution, key="k")
    worker.advance(execution, ending=failed())
    assert isinstance(worker.wait(worker.start(), key="k"), Awaited)


def test_a_fork_waits_anew_for_what_its_source_has_done_with(worker: Worker) -> None:
    source = worker.start()
    worker.wait(source, key="k")
    number = worker.draw()
    worker.control("fork", source, fork=number, from_step=1)
    fork = worker.pick_up(only=number)[0].execution
    assert isinstance(worker.wait(fork, key="k"), KeyTaken)

    worker.resolve(worker.target("k"))

    assert isinstance(worker.wait(fork, key="k"), Awaited)
    assert isinstance(worker.wait(worker.start(), key="k"), KeyTaken)


def test_tenants_have_keys_of_their_own(worker: Worker) -> None:
    other = worker.of("globex")
    first, second = worker.make("p", "k").promise, other.make("p", "k").promise
    assert (worker.promise("k"), other.promise("k")) == (first, second)


# -- parked resolutions ------------------------------------------------------------------------


def test_a_parked_resolution_is_delivered_at_once(worker: Worker) -> None:
    parked = worker.resolve(worker.target("k"), b"7", request_key="evt-1", park="k")
    assert isinstance(parked, Parked)
    execution = worker.start()

    answer = worker.wait(
        execution, 2, key="k", advance=worker.advancing(execution, entry(0), waits=0)
    )

    promise, now = answer.promise, worker.clock.now()
    assert (promise.state, promise.body) == (PromiseState.RESOLVED, b"7")
    assert (promise.settled_by, promise.settled_at) == ("evt-1", now)
    assert answer.entry == Entry(2, Step.PROMISE, "payment", b"p" * 16, False, b"7", 1, now, now)
    assert not answer.waits
    assert worker.journal(execution.id) == [entry(0), answer.entry]
    assert worker.execution(execution.id).wakes == 1


def test_a_parked_rejection_is_delivered_as_one(worker: Worker) -> None:
    worker.resolve(worker.target("k"), FAILURE, state=PromiseState.REJECTED, park="k")
    answer = worker.wait(worker.start(), key="k")
    assert answer.promise.state is PromiseState.REJECTED
    assert (answer.entry.failed, answer.entry.body) == (True, FAILURE)


def test_a_parked_resolution_is_delivered_once(worker: Worker) -> None:
    worker.resolve(worker.target("k"), park="k")
    worker.wait(worker.start(), key="k", kept=10)
    worker.clock.advance(10)
    assert worker.wait(worker.start(), key="k").entry is None


def test_a_parked_resolution_past_its_time_is_not_delivered(worker: Worker) -> None:
    worker.resolve(worker.target("k"), park="k", park_kept=10)
    worker.clock.advance(10)
    assert worker.wait(worker.start(), key="k").entry is None


# -- lying down --------------------------------------------------------------------------------


def test_an_execution_lies_down_with_what_it_waits_for(worker: Worker) -> None:
    execution = waiting(worker)
    assert (execution.status, execution.owner) == (Status.WAITING, 0)


def test_it_does_not_lie_down_when_something_is_new(worker: Worker) -> None:
    execution = worker.start()
    first = worker.wait(execution, 0, "a").promise
    worker.resolve(worker.target(id=first.id))
    request = worker.awaiting(execution, 1, "b", advance=worker.advancing(execution, waits=0))
    assert not worker.ask(request).waits
    assert worker.execution(execution.id).status is Status.RUNNING


def test_lying_down_again_at_a_position_that_is_known(worker: Worker) -> None:
    execution = worker.start()
    worker.wait(execution, 0)
    again = worker.wait(execution, 0, advance=worker.advancing(execution, waits=0))
    assert again.waits
    assert worker.execution(execution.id).status is Status.WAITING


def test_a_run_that_goes_on_gets_its_execution_up(worker: Worker) -> None:
    execution = waiting(worker)
    assert isinstance(worker.wait(execution, 1, "b"), Awaited)
    up = worker.execution(execution.id)
    assert up.status is Status.RUNNING
    assert up.owner != 0
    assert worker.advance(up, entry(4), waits=0) == Advanced()
    assert worker.advance(up, ending=succeeded()) == Advanced()


def test_a_run_with_nothing_to_journal_gets_its_execution_up_too(worker: Worker) -> None:
    execution = waiting(worker)
    assert worker.advance(execution) == Advanced()
    assert worker.execution(execution.id).status is Status.RUNNING
    assert worker.advance(execution._replace(fence=2)) == Lost()


def test_what_was_waited_for_makes_it_ready(worker: Worker) -> None:
    execution = waiting(worker, key="k")
    answer = worker.resolve(worker.target("k"), b"5")
    assert isinstance(answer, Settled)
    [told] = worker.journal(execution.id)
    assert answer.woken == Woken(execution.id, True, told, answer.promise.id)
    ready = worker.execution(execution.id)
    assert (ready.status, ready.wakes, ready.fence) == (Status.READY, 1, 1)
    [picked] = worker.pick_up()
    assert (picked.execution.fence, picked.entries, picked.promises) == (2, [told], [])


def test_a_run_that_was_woken_elsewhere_has_lost(worker: Worker) -> None:
    execution = waiting(worker, key="k")
    worker.resolve(worker.target("k"))
    assert worker.wait(execution, 1, "b") == Lost()


# -- retries -----------------------------------------------------------------------------------


def retrying(worker: Worker, execution: Execution, attempts: int, seq: int = 0) -> Awaited:
    answer = worker.wait(
        execution,
        seq,
        "charge",
        PromiseKind.RETRY,
        attempts=attempts,
        body=FAILURE,
        due_at=worker.clock.now() + 10,
    )
    assert isinstance(answer, Awaited)
    return answer


def test_a_retry_replaces_the_one_before_it(worker: Worker) -> None:
    execution = worker.start()
    retrying(worker, execution, 1)
    second = retrying(worker, execution, 2).promise
    assert worker.promises_of(execution) == [second]
    assert second.attempts == 2


def test_a_retry_is_no_step_but_is_known_to_a_replay(worker: Worker) -> None:
    execution = worker.start()
    promise = retrying(worker, execution, 3, BODY).promise
    worker.clock.advance(10)
    assert worker.due().woken == [Woken(execution.id, False, None, promise.id)]
    assert worker.journal(execution.id) == []
    picked = worker.ask(Load(execution.id, 1))
    settled = promise._replace(
        state=PromiseState.RESOLVED, settled_at=worker.clock.now(), body=FAILURE
    )
    assert picked.promises == [settled]


def test_other_code_may_come_to_where_an_attempt_failed(worker: Worker) -> None:
    execution = worker.start()
    retrying(worker, execution, 1)
    worker.clock.advance(10)
    worker.due()
    made = worker.wait(execution, 0, "sleep", PromiseKind.SLEEP, due_at=worker.clock.now() + 5)
    assert made.entry is None
    assert worker.promises_of(execution) == [made.promise]


def test_a_retry_of_a_task(worker: Worker) -> None:
    task = worker.start("mail", sort=Sort.TASK)
    promise = retrying(worker, task, 1).promise
    assert worker.promises_of(task) == [promise]
    assert promise.sort is Sort.TASK


# -- tokens ------------------------------------------------------------------------------------


def test_a_promise_is_found_by_each_of_its_tokens(worker: Worker) -> None:
    execution = worker.start()
    promise = worker.wait(execution, 4, token=TOKEN).promise
    assert worker.ask(AddToken(execution.id, 1, 4, OTHER)) == Advanced()
    assert worker.promise(token=TOKEN) == promise
    assert worker.promise(token=OTHER) == promise
    assert worker.promise(token=b"x" * 32) is None


def test_a_position_that_is_known_gets_the_token_all_the_same(worker: Worker) -> None:
    execution = worker.start()
    promise = worker.wait(execution, 4, token=TOKEN).promise
    worker.wait(execution, 4, token=OTHER)
    assert worker.promise(token=OTHER) == promise


def test_a_stale_run_adds_no_token(worker: Worker) -> None:
    execution = worker.start()
    worker.wait(execution, 4)
    assert worker.ask(AddToken(execution.id, 2, 4, TOKEN)) == Lost()
    assert worker.promise(token=TOKEN) is None


def test_a_run_that_lay_down_gets_up_for_a_token(worker: Worker) -> None:
    execution = waiting(worker)
    assert worker.ask(AddToken(execution.id, execution.fence, 0, TOKEN)) == Advanced()
    assert worker.promise(token=TOKEN) is not None
    assert worker.execution(execution.id).status is Status.RUNNING


def test_only_pending_promises_and_retries_are_replayed(worker: Worker) -> None:
    execution = worker.start()
    settled = worker.wait(execution, 0, "a").promise
    pending: Promise = worker.wait(execution, 1, "b").promise
    worker.resolve(worker.target(id=settled.id))
    assert worker.ask(Load(execution.id, 1)).promises == [pending]
