"""Topics on Restate: large ones, odd names, and what happens at once or in the wrong order."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from oncekey.core.answers import Existing
from oncekey.core.execution import Promise, PromiseKind
from oncekey.core.ports import Gone, Peek
from oncekey.core.work import (
    Event,
    Events,
    ListEvents,
    Match,
    Matched,
    Publish,
    Unmatched,
    Waits,
)
from oncekey.stores.restate import event as kept
from oncekey.stores.restate import request, topic
from oncekey.stores.restate.store import RestateStore
from oncekey.stores.restate.topic import topic_id
from oncekey.stores.restate.values import pack
from tests.fixtures.restate_server import RestateServer
from tests.fixtures.stores import Place, until
from tests.fixtures.work import Worker, ref_of, succeeded

pytestmark = pytest.mark.restate

# As many as Restate lets into one object at once.
MANY = 2_500
SHIPPED = topic_id("acme", "shipped")


@pytest.fixture
def place(restate_url: str) -> Iterator[Place]:
    opened = Place(restate_url)
    yield opened
    opened.close()


def store_of(worker: Worker) -> RestateStore:
    store = worker.caller.store
    assert isinstance(store, RestateStore)
    return store


def call(worker: Worker, service: str, id: str, handler: str, value: object) -> Any:  # noqa: A002
    return store_of(worker).run(lambda cluster: cluster.link.call(service, id, handler, value))


def wait_of(worker: Worker, name: str = "shipped") -> Promise:
    """One that nobody knows of yet."""
    promise = worker.promising(name=name, kind=PromiseKind.EVENT, topic=name)
    return promise._replace(execution=worker.draw(), seq=0)


def waiting(worker: Worker, name: str = "shipped") -> Promise:
    wait = wait_of(worker, name)
    call(worker, topic.SERVICE, topic_id(worker.tenant, name), "add_wait", wait)
    return wait


def fill(
    restate: RestateServer,
    worker: Worker,
    service: str,
    id: str,  # noqa: A002
    states: dict[str, bytes],
) -> None:
    """Give an object all of its state at once."""
    key = store_of(worker).cluster.link.key(id)
    told = {"object_key": key, "new_state": {name: list(value) for name, value in states.items()}}
    answer = httpx.post(
        f"{restate.admin}/services/{service}/state",
        content=json.dumps(told, separators=(",", ":")),
        headers={"content-type": "application/json"},
        timeout=60,
        trust_env=False,
    )
    assert answer.is_success, answer.text


# -- large topics ------------------------------------------------------------------------------


def test_a_topic_may_have_very_many_waits(worker: Worker, restate: RestateServer) -> None:
    waits = [wait_of(worker) for _ in range(MANY)]
    now = worker.clock.now()
    states = {f"w:{wait.id:016x}": pack(wait) for wait in waits}
    fill(restate, worker, topic.SERVICE, SHIPPED, states)
    until(lambda: worker.ask(Waits("acme", "shipped", 0, now, limit=1)))

    added = waiting(worker)
    call(worker, topic.SERVICE, SHIPPED, "drop_wait", waits[1].id)

    found: list[Promise] = []
    while page := worker.ask(Waits("acme", "shipped", found[-1].id if found else 0, now)):
        found += page
    assert found == [waits[0], *waits[2:], added]
    assert worker.ask(Waits("acme", "shipped", waits[-2].id, now)) == [waits[-1], added]


def test_a_topic_may_have_very_many_events(worker: Worker, restate: RestateServer) -> None:
    events = [worker.publishing().event for _ in range(4 * MANY)]
    for share in range(kept.SHARES):
        states = {kept.name_of(each): pack(each) for each in events[share :: kept.SHARES]}
        id_ = kept.share_of(SHIPPED, events[share].id)
        fill(restate, worker, kept.LOOKBACK, id_, states)
    until(lambda: len(worker.ask(Events("acme", "shipped", 0, events[-9].id))) == kept.SHARES)

    latest = worker.publishing()
    assert worker.ask(latest) is True

    assert worker.ask(Events("acme", "shipped", 0)) == events[:200]
    found = worker.ask(Events("acme", "shipped", 0, after=events[-2].id))
    assert found == [events[-1], latest.event]


def test_a_page_of_large_events_is_shorter(worker: Worker) -> None:
    data = b'"' + b"x" * (256 << 10) + b'"'
    events = [worker.publishing(data=data) for _ in range(20)]
    assert worker.caller.ask_all(events) == [True] * 20

    found: list[Event] = []
    pages = 0
    while page := worker.ask(Events("acme", "shipped", 0, after=found[-1].id if found else 0)):
        found += page
        pages += 1
    assert found == [each.event for each in events]
    assert pages > 1


# -- names -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "one, other",
    [
        (("ab", "c"), ("a", "bc")),
        (("1:a", "b"), ("1", ":ab")),
        (("", "1:ab"), ("1:a", "b")),
        (("a:b", "c"), ("a", "b:c")),
        (("a", "b\x00c"), ("a\x00b", "c")),
    ],
)
def test_topics_of_tenants_are_not_taken_for_each_other(
    worker: Worker, one: tuple[str, str], other: tuple[str, str]
) -> None:
    kept_there = worker.of(other[0]).publishing(other[1])
    assert worker.ask(kept_there) is True
    wait = waiting(worker.of(other[0]), other[1])
    now = worker.clock.now()
    assert worker.ask(Events(*one, 0)) == []
    assert worker.ask(Waits(*one, 0, now)) == []
    assert worker.ask(Events(*other, 0)) == [kept_there.event]
    assert worker.ask(Waits(*other, 0, now)) == [wait]


def test_lists_tell_names_apart_that_look_alike_in_a_pattern(worker: Worker) -> None:
    names = ["a%c", "abc", "a_c", "a\\%c", "a\\c", "it's", 'say "so"', "straße", "%", "", "a','c"]
    events = {name: worker.of(name).publishing(name) for name in names}
    worker.caller.ask_all(list(events.values()))
    for name in names:
        assert worker.ask(ListEvents(name)) == [events[name].event]
        assert worker.ask(ListEvents(name, name)) == [events[name].event]
        assert worker.ask(ListEvents(name, "other")) == []


def test_spaces_on_one_server_do_not_see_each_other(worker: Worker, restate: RestateServer) -> None:
    elsewhere = Place(restate.url())
    try:
        other = Worker(elsewhere.open())
        assert other.ask(other.publishing()) is True
        waiting(other)
        now = worker.clock.now()
        assert worker.ask(Events("acme", "shipped", 0)) == []
        assert worker.ask(Waits("acme", "shipped", 0, now)) == []
        assert worker.ask(ListEvents("acme")) == []
        assert worker.ask(Unmatched(now + 1)) == []
    finally:
        elsewhere.close()


# -- at once -----------------------------------------------------------------------------------


def test_a_key_is_published_once_however_many_try_at_once(place: Place) -> None:
    workers = [Worker(place.open()) for _ in range(2)]
    requests = [workers[place % 2].publishing(key="e-1") for place in range(16)]
    start = threading.Barrier(len(requests))

    def publish(number: int) -> tuple[Any, list[Event]]:
        """The answer, and the event that has the key, as it is found right after it."""
        worker, asked = workers[number % 2], requests[number]
        start.wait()
        answer = worker.ask(asked)
        first = answer.record.id if isinstance(answer, Existing) else asked.event.id
        return answer, worker.ask(Events("acme", "shipped", 0, after=first - 1))

    with ThreadPoolExecutor(len(requests)) as threads:
        told = list(threads.map(publish, range(len(requests))))

    (first,) = [
        asked.event for asked, (answer, _) in zip(requests, told, strict=True) if answer is True
    ]
    existing = [answer for answer, _ in told if answer is not True]
    assert {answer.record.id for answer in existing} == {first.id}
    assert all(found == [first] for _, found in told)
    assert workers[0].ask(ListEvents("acme")) == [first]


def test_a_wait_and_an_event_that_come_at_once_do_not_miss_each_other(place: Place) -> None:
    """Whoever registers a wait looks back afterwards; whoever publishes looks at waits then."""
    publisher, waiter = Worker(place.open()), Worker(place.open())
    start = threading.Barrier(2)
    now = place.clock.now()

    def publish(name: str) -> bool:
        request = publisher.publishing(name)
        start.wait()
        assert publisher.ask(request) is True
        return bool(publisher.ask(Waits("acme", name, 0, now)))

    def wait(name: str) -> bool:
        wait = wait_of(waiter, name)
        start.wait()
        call(waiter, topic.SERVICE, topic_id("acme", name), "add_wait", wait)
        return bool(waiter.ask(Events("acme", name, 0)))

    with ThreadPoolExecutor(2) as threads:
        for name in map(str, range(20)):
            publishing, registering = threads.submit(publish, name), threads.submit(wait, name)
            saw_wait, saw_event = publishing.result(), registering.result()
            assert saw_wait or saw_event


# -- matching ----------------------------------------------------------------------------------


def test_more_waits_are_matched_than_go_into_one_flow(place: Place) -> None:
    """Also by a process that has not read them."""
    worker, publisher = Worker(place.open()), Worker(place.open())
    executions = [worker.start() for _ in range(45)]
    promises = [
        worker.wait(each, 0, "shipped", PromiseKind.EVENT, topic="shipped").promise
        for each in executions
    ]
    published = publisher.publishing(data=b"[1]")
    assert publisher.ask(published) is True

    numbers = tuple(promise.id for promise in reversed(promises))
    now = place.clock.now()
    woken = publisher.ask(Match("acme", published.event.id, numbers, b"[1]", now))

    assert [each.promise for each in woken] == [promise.id for promise in promises]
    assert publisher.ask(Matched(published.event.id)) == 45
    assert kept_of(worker) == []


def test_a_wait_leaves_its_topic_with_the_execution_that_made_it(worker: Worker) -> None:
    execution = worker.start()
    worker.wait(execution, 0, "shipped", PromiseKind.EVENT, topic="shipped")
    assert len(kept_of(worker)) == 1
    worker.advance(execution, ending=succeeded())
    until(lambda: kept_of(worker) == [])


def kept_of(worker: Worker) -> list[Any]:
    """Everything that topics have of this space."""
    found: list[Any] = store_of(worker).run(lambda cluster: cluster.link.states(topic.SERVICE, "%"))
    return found


# -- in the wrong order ------------------------------------------------------------------------


def test_whoever_finds_a_key_spent_keeps_the_event_its_publisher_could_not(worker: Worker) -> None:
    """The publisher died when its key was spent and the event not kept."""
    lost = worker.publishing(key="e-1")
    assert lost.insert is not None
    asked = [lost.event, lost.insert]
    assert call(worker, request.SERVICE, lost.insert.digest.hex(), "publish", asked) is True
    assert worker.ask(ListEvents("acme")) == []

    answer = worker.ask(worker.publishing(key="e-1"))

    assert isinstance(answer, Existing)
    assert answer.record.id == lost.event.id
    assert worker.ask(ListEvents("acme")) == [lost.event]
    assert worker.ask(Events("acme", "shipped", 0)) == [lost.event]


def test_a_key_spent_on_an_event_that_cannot_be_kept_is_free(worker: Worker) -> None:
    """The publisher died before it could draw another number."""
    first = worker.publishing()
    assert worker.ask(first) is True
    lost = worker.publishing("other", key="e-1")
    assert lost.insert is not None
    number = first.event.id
    lost = Publish(lost.event._replace(id=number), lost.insert._replace(id=number))
    assert lost.insert is not None
    asked = [lost.event, lost.insert]
    assert call(worker, request.SERVICE, lost.insert.digest.hex(), "publish", asked) is True

    again = worker.publishing("other", key="e-1")

    assert worker.ask(again) is True
    assert worker.ask(ListEvents("acme")) == [again.event, first.event]
    found = worker.ask(Peek(ref_of("acme", "event", "e-1").digest))
    assert found.record.id == again.event.id


def test_an_event_whose_number_is_taken_leaves_the_other_as_it_is(worker: Worker) -> None:
    first = worker.publishing(data=b"[1]")
    assert worker.ask(first) is True
    clash = first._replace(event=first.event._replace(data=b"[2]"))
    assert worker.ask(clash) == Gone()
    assert worker.ask(Events("acme", "shipped", 0)) == [first.event]
    assert worker.ask(ListEvents("acme")) == [first.event]


def test_a_wait_that_is_dropped_before_it_comes_is_not_seen(worker: Worker) -> None:
    late, other = wait_of(worker), waiting(worker)
    call(worker, topic.SERVICE, SHIPPED, "drop_wait", late.id)
    call(worker, topic.SERVICE, SHIPPED, "add_wait", late)
    now = worker.clock.now()
    assert worker.ask(Waits("acme", "shipped", 0, now)) == [other]
    call(worker, topic.SERVICE, SHIPPED, "bury", late.id)
    assert worker.ask(Waits("acme", "shipped", 0, now)) == [other]


# -- time --------------------------------------------------------------------------------------


def test_events_past_their_time_are_forgotten_without_anybody_asking(worker: Worker) -> None:
    now = worker.clock.now()
    lasting, short = worker.publishing(), worker.publishing(expires_at=now + 100)
    worker.caller.ask_all([lasting, short])
    until(lambda: worker.ask(ListEvents("acme")) == [lasting.event])
    until(lambda: worker.ask(Events("acme", "shipped", 0)) == [lasting.event])


def test_a_key_outlives_its_event(worker: Worker) -> None:
    """Whoever finds it spent does not keep the event anew."""
    now = worker.clock.now()
    short = worker.publishing(key="e-1", expires_at=now + 100)
    assert worker.ask(short) is True
    until(lambda: worker.ask(ListEvents("acme")) == [])
    until(lambda: worker.ask(Events("acme", "shipped", 0)) == [])
    worker.clock.advance(100)
    assert isinstance(worker.ask(worker.publishing(key="e-1")), Existing)
    assert worker.ask(ListEvents("acme")) == []
    assert worker.ask(Events("acme", "shipped", 0)) == []
