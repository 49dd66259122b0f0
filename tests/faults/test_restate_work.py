"""Durable work on Restate when processes die: whoever asks, between any two steps of what it asked
for, and whoever serves, in the middle of everything."""

import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from oncekey.compose.ledger import store_of
from oncekey.core.answers import (
    Advanced,
    AlreadySettled,
    Awaited,
    Existing,
    KeyTaken,
    Lost,
    Settled,
    Spawned,
    Started,
)
from oncekey.core.clock import SystemClock
from oncekey.core.execution import (
    Entry,
    Execution,
    Promise,
    PromiseKind,
    PromiseState,
    Status,
    Step,
)
from oncekey.core.model import Kind, Link, Outcome
from oncekey.core.ports import Peek
from oncekey.core.work import FindExecution, HandBack, Spawn, Waits
from oncekey.stores.restate.asked import Claiming, Creation
from oncekey.stores.restate.asking.promises import with_key
from oncekey.stores.restate.options import RestateOptions
from tests.fixtures.ports import lasting_port
from tests.fixtures.processes import Start as StartProcess
from tests.fixtures.quiet import settle_down
from tests.fixtures.restate_host import serve
from tests.fixtures.restate_server import RestateServer, new_space
from tests.fixtures.stores import Caller, until
from tests.fixtures.work import Worker, entry, ref_of, succeeded

pytestmark = pytest.mark.restate

DONE = Outcome(Kind.VALUE, body=b"null")


def opened(url: str, **options: Any) -> Worker:
    clock: Any = SystemClock()
    store = store_of(url, clock, **options)
    store.open(lambda _: 0)
    return Worker(Caller(store, clock, itertools.count(clock.now() << 21)))


@pytest.fixture
def first(restate_url: str) -> Iterator[Worker]:
    worker = opened(restate_url)
    yield worker
    worker.caller.store.close()


@pytest.fixture
def second(first: Worker, restate_url: str) -> Iterator[Worker]:
    """Another process, which goes on when the first is gone."""
    worker = opened(restate_url)
    yield worker
    worker.caller.store.close()


def half(worker: Worker, service: str, number: int | bytes, handler: str, value: Any) -> Any:
    """One step of something that takes several: whoever asked for it died after it."""
    id_ = f"{number:016x}" if isinstance(number, int) else number.hex()
    store: Any = worker.caller.store
    return store.run(lambda cluster: cluster.link.call(f"oncekey.{service}", id_, handler, value))


def owner_of(worker: Worker) -> int:
    store: Any = worker.caller.store
    owner: int = store.cluster.link.owner
    return owner


def taken_over(worker: Worker, execution: Execution) -> Execution:
    """By whoever goes on with it."""
    worker.ask(HandBack(((execution.id, execution.fence),)))
    [picked] = worker.pick_up(only=execution.id)
    assert picked.promises == []
    return picked.execution


# -- whoever asks dies -------------------------------------------------------------------------


def test_a_start_whose_asker_died_after_the_claim_is_made(first: Worker) -> None:
    start = first.starting(key="k", status=Status.READY)
    assert start.insert is not None
    execution = start.execution._replace(key="k")
    creation = Creation(execution, owner_of(first), start.insert.digest)
    link = Link("workflow", execution.public_id)

    half(
        first, "Request", start.insert.digest, "claim", Claiming(start.insert, link, None, creation)
    )

    until(lambda: first.ask(FindExecution(None, execution.id)))
    again = first.ask(first.starting(key="k"))
    assert isinstance(again, Existing)
    assert again.execution is not None
    assert again.execution.id == execution.id


def test_a_key_whose_promise_was_made_and_not_claimed_is_claimed_by_who_goes_on(
    first: Worker, second: Worker
) -> None:
    execution = first.start()
    request = first.awaiting(execution, 0, key="k", advance=first.advancing(execution, waits=0))
    half(first, "Execution", execution.id, "wait", [request, owner_of(first), 0])
    assert first.execution(execution.id).status is Status.RUNNING
    assert first.ask(Peek(ref_of("acme", "promise", "k").digest)) is None

    taken = taken_over(second, execution)
    advance = second.advancing(taken, waits=0)
    answer = second.wait(taken, 0, key="k", advance=advance)

    assert isinstance(answer, Awaited)
    assert answer.promise.id == request.promise.id
    assert answer.waits
    assert second.promise("k") == answer.promise
    assert second.resolve(second.target("k")).woken.ready


def test_a_key_that_was_claimed_is_the_same_promises_when_another_goes_on(
    first: Worker, second: Worker
) -> None:
    first.resolve(first.target("k"), b"8", request_key="r", park="k")
    execution = first.start()
    request = first.awaiting(execution, 0, key="k")
    half(first, "Execution", execution.id, "wait", [request, owner_of(first), 0])
    assert request.insert is not None
    claiming = Claiming(request.insert, Link("promise", request.promise.public_id))
    half(first, "Request", request.insert.digest, "claim", claiming)

    taken = taken_over(second, execution)
    answer = second.wait(taken, 0, key="k")

    assert isinstance(answer, Awaited)
    assert (answer.promise.id, answer.promise.state) == (request.promise.id, PromiseState.RESOLVED)
    assert [told.body for told in second.journal(execution.id)] == [b"8"]


def made_after(worker: Worker, execution: Execution | None, *, claims: bool = True) -> Promise:
    """A promise for whose key something has come before, made by somebody who died then, or when he
    had claimed the key."""
    worker.resolve(worker.target("k"), b"8", request_key="r", park="k")
    if execution is None:
        making = worker.making("p", "k")
        insert = making.insert
        assert insert is not None
        promise = with_key(making.promise, insert)
        half(worker, "Promise", promise.id, "make", [promise, insert.digest, 0])
    else:
        request = worker.awaiting(execution, 0, key="k")
        promise, insert = request.promise, request.insert
        assert insert is not None
        half(worker, "Execution", execution.id, "wait", [request, owner_of(worker), 0])
    if claims:
        link = Link("promise", promise.public_id)
        half(worker, "Request", insert.digest, "claim", Claiming(insert, link))
    return promise


@pytest.mark.parametrize("is_alone", [True, False])
def test_what_came_before_is_delivered_though_whoever_claimed_the_key_died(
    first: Worker, *, is_alone: bool
) -> None:
    promise = made_after(first, None if is_alone else first.start())
    until(lambda: first.current(promise).state is PromiseState.RESOLVED)
    assert (first.current(promise).body, first.current(promise).settled_by) == (b"8", "r")


@pytest.mark.parametrize("is_alone", [True, False])
@pytest.mark.parametrize("has_key", [True, False])
def test_what_came_first_for_a_key_settles_its_promise_whoever_comes_before_it_is_told(
    first: Worker, *, is_alone: bool, has_key: bool
) -> None:
    promise = made_after(first, None if is_alone else first.start(), claims=has_key)
    target = first.target("k") if has_key else first.target(id=promise.id)

    late = first.resolve(target, b"9", request_key="s")
    again = first.resolve(first.target("k"), b"8", request_key="r", park="k")

    assert isinstance(late, AlreadySettled)
    assert isinstance(again, AlreadySettled)
    assert (late.again, again.again) == (False, True)
    assert (late.key_new, again.key_new) == (True, False)
    assert (late.promise.state, late.promise.body) == (PromiseState.RESOLVED, b"8")
    assert again.promise.settled_by == "r"


def test_whoever_asks_again_what_he_has_parked_hears_that_he_won_and_nothing_else(
    first: Worker,
) -> None:
    """The promise had no key when he looked for it, and has come between."""
    promise = made_after(first, first.start())
    resolving = ref_of("acme", "resolve", "r").digest
    until(lambda: first.ask(Peek(resolving)).record.link is not None)
    half(first, "Request", ref_of("acme", "promise", "k").digest, "forget", promise.id)

    again = first.resolve(first.target("k"), b"8", request_key="r", park="k")

    assert isinstance(again, AlreadySettled)
    assert again.again
    assert again.promise.state is PromiseState.RESOLVED


def test_a_refusal_that_nobody_heard_of_is_found_again(first: Worker, second: Worker) -> None:
    holder = first.make("other", "k").promise
    execution = first.start()
    request = first.awaiting(execution, 0, key="k")
    half(first, "Execution", execution.id, "wait", [request, owner_of(first), 0])

    taken = taken_over(second, execution)

    assert second.wait(taken, 0, key="k") == KeyTaken(holder)
    assert second.promises_of(execution) == []


def test_a_wait_for_an_event_that_no_topic_knows_of_is_made_known(
    first: Worker, second: Worker
) -> None:
    execution = first.start()
    request = first.awaiting(execution, 0, "t", PromiseKind.EVENT, topic="t")
    half(first, "Execution", execution.id, "wait", [request, owner_of(first), 0])
    assert first.ask(Waits("acme", "t", 0, first.clock.now())) == []

    taken = taken_over(second, execution)
    answer = second.wait(taken, 0, "t", PromiseKind.EVENT, topic="t")

    assert isinstance(answer, Awaited)
    assert second.ask(Waits("acme", "t", 0, second.clock.now())) == [answer.promise]


def test_a_child_whose_caller_died_is_the_one_that_is_waited_for(
    first: Worker, second: Worker
) -> None:
    execution = first.start()
    child = first.start("child", "c", status=Status.READY)

    taken = taken_over(second, execution)
    call = second.awaiting(
        taken,
        0,
        "child",
        PromiseKind.CALL,
        start=second.starting("child", "c"),
        advance=second.advancing(taken, waits=0),
    )
    promise = call.promise._replace(target=child.id)
    half(first, "Execution", taken.id, "wait", [call._replace(start=None, promise=promise), 5, 0])
    again = taken_over(first, taken)
    answer = first.ask(call._replace(advance=first.advancing(again, waits=0)))

    assert isinstance(answer, Awaited)
    assert (answer.promise.target, answer.started, answer.waits) == (child.id, None, True)
    [picked] = first.pick_up("child")
    first.advance(picked.execution, ending=succeeded(b"3", keyed=True))
    settle_down(first.caller.store)
    assert [told.body for told in first.journal(execution.id)] == [b"3"]


def test_a_spawn_by_key_that_was_not_journaled_starts_nothing_twice(
    first: Worker, second: Worker
) -> None:
    execution = first.start()
    start = first.starting("child", "c", status=Status.READY)
    assert isinstance(first.ask(start), Started)

    taken = taken_over(second, execution)
    begun = Entry(1, Step.START, "child", b"s" * 16, False, b"null", 1, 5, 5)
    answer = second.ask(
        Spawn(second.advancing(taken), second.starting("child", "c", status=Status.READY), begun)
    )

    assert isinstance(answer, Spawned)
    assert answer.entry.body == f'"{start.execution.public_id}"'.encode()


def test_a_request_that_was_spent_and_settled_nothing_settles_when_it_comes_again(
    first: Worker,
) -> None:
    promise = first.pending("k")
    request = first.resolving(first.target("k"), b"4", request_key="r")
    assert request.insert is not None
    claiming = Claiming(request.insert, Link("promise", promise.public_id), DONE)
    half(first, "Request", request.insert.digest, "claim", claiming)

    again = first.resolve(first.target("k"), b"4", request_key="r")

    assert isinstance(again, Settled)
    assert (again.promise.body, again.promise.settled_by) == (b"4", "r")


def test_a_request_that_was_spent_and_not_parked_is_parked_when_it_comes_again(
    first: Worker,
) -> None:
    request = first.resolving(first.target("k"), b"4", request_key="r", park="k")
    assert request.insert is not None
    operation = request.insert.operation._replace(request_id="key:k")
    claiming = Claiming(request.insert._replace(operation=operation), None, DONE)
    half(first, "Request", request.insert.digest, "claim", claiming)

    first.resolve(first.target("k"), b"4", request_key="r", park="k")

    assert first.pending("k").body == b"4"


def test_a_promise_that_was_made_and_not_claimed_does_not_keep_its_key(first: Worker) -> None:
    making = first.making("p", "k")
    half(first, "Promise", making.promise.id, "make", [making.promise, making.insert.digest, 0])

    assert isinstance(first.make("other", "k"), Awaited)


def test_a_stale_run_registers_nothing(first: Worker, second: Worker) -> None:
    execution = first.start()
    request = first.awaiting(execution, 0, key="k")
    half(first, "Execution", execution.id, "wait", [request, owner_of(first), 0])
    taken_over(second, execution)

    assert first.ask(request) == Lost()
    assert first.advance(execution, entry(3)) == Lost()


# -- whoever serves dies -----------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[RestateServer]:
    """One whose objects are served by processes of the test alone."""
    made = RestateServer()
    try:
        made.start()
        yield made
    finally:
        made.close()


def test_whatever_is_under_way_goes_on_when_who_serves_it_is_killed(
    server: RestateServer, start: StartProcess
) -> None:
    url = server.url(space=new_space(), endpoint=f"http://127.0.0.1:{lasting_port()}")
    host = start(serve, url)
    assert host.hear() == "it serves"
    worker = opened(url, restate=RestateOptions(hosts=False))
    begun = threading.Semaphore(0)

    with ThreadPoolExecutor(12) as threads:
        acts = [threads.submit(act, worker, number, begun) for number in range(48)]
        for _ in range(3):
            for _ in range(8):
                begun.acquire()
            host.kill()
            host = start(serve, url)
        told = [each.result() for each in acts]

    worker.caller.store.close()
    assert told == [(1, [b"5", b"7"], Status.SUCCEEDED, "replayed")] * len(told)


def act(worker: Worker, number: int, begun: threading.Semaphore) -> Any:
    """Everything an execution can go through, each step asked for once. Answers how many forks it
    has, what it was told, and how it ended."""
    execution = worker.start("order", f"k-{number}")
    begun.release()
    key = f"p-{number}"
    assert worker.wait(execution, 0, key=key).promise.key == key
    child = worker.starting("child", f"c-{number}")
    assert worker.wait(execution, 1, "child", PromiseKind.CALL, start=child).started
    begun.release()
    assert isinstance(worker.resolve(worker.target(key), b"5", request_key=key), Settled)
    worker.advance(worker.execution(child.execution.id), ending=succeeded(b"7", keyed=True))
    forks = [worker.draw() for _ in range(2)]
    for fork in forks:
        worker.control("fork", execution, f"f-{number}", fork=fork, from_step=1)
    assert worker.advance(execution, ending=succeeded(keyed=True)) == Advanced()
    again = worker.ask(worker.starting("order", f"k-{number}"))
    assert isinstance(again, Existing)
    assert again.execution is not None
    made = [fork for fork in forks if worker.ask(FindExecution(None, fork)) is not None]
    bodies = sorted(told.body for told in worker.journal(execution.id))
    last = worker.control("fork", execution, f"f-{number}", fork=forks[1], from_step=1)
    return len(made), bodies, again.execution.status, last.verdict
