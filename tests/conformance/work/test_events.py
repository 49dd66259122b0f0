"""Events: kept once for their key, and given to the waits they fit."""

from oncekey.core.answers import Existing, Woken
from oncekey.core.execution import (
    Entry,
    Execution,
    Promise,
    PromiseKind,
    PromiseState,
    Status,
    Step,
)
from oncekey.core.model import State
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
    event_id_of,
)
from tests.fixtures.stores import DAY
from tests.fixtures.work import Worker, ref_of, succeeded


def published(worker: Worker, topic: str = "shipped", **fields: object) -> Event:
    request = worker.publishing(topic, **fields)
    assert worker.ask(request) is True
    return request.event


def waiting(worker: Worker, topic: str = "shipped", *, lies: bool = True) -> Promise:
    """A wait of an execution of its own."""
    execution = worker.start()
    advance = worker.advancing(execution, waits=0) if lies else None
    fields = {"topic": topic, "condition": "input.id == 1"}
    answer = worker.wait(execution, 0, topic, PromiseKind.EVENT, advance=advance, **fields)
    assert answer.waits is lies
    promise: Promise = answer.promise
    return promise


def execution_of(worker: Worker, promise: Promise) -> Execution:
    assert promise.execution is not None
    return worker.execution(promise.execution)


def match(worker: Worker, event: Event, *promises: Promise, **fields: object) -> list[Woken]:
    numbers = tuple(promise.id for promise in promises)
    request = Match(worker.tenant, event.id, numbers, event.data, worker.clock.now())
    woken: list[Woken] = worker.ask(request._replace(**fields))
    return woken


# -- publishing --------------------------------------------------------------------------------


def test_an_event_is_kept_as_it_came(worker: Worker) -> None:
    event = published(worker, data=b'{"id":1}', headers=b'{"a":"b"}')
    assert worker.ask(Events("acme", "shipped", 0)) == [event]


def test_a_key_is_published_once(worker: Worker) -> None:
    first = worker.publishing(key="e-1")
    assert worker.ask(first) is True
    answer = worker.ask(worker.publishing(key="e-1"))
    assert isinstance(answer, Existing)
    assert (answer.record.id, answer.record.state) == (first.event.id, State.SUCCEEDED)
    assert (answer.execution, answer.record.link) == (None, None)
    assert worker.ask(ListEvents("acme")) == [first.event]


def test_a_commit_nobody_heard_of_published_it(worker: Worker) -> None:
    for request in (worker.publishing(key="e-1"), worker.publishing()):
        assert worker.ask(request) is True
        assert worker.ask(request) is True
    assert len(worker.ask(ListEvents("acme"))) == 2
    assert isinstance(worker.ask(worker.publishing(key="e-1")), Existing)


def test_a_key_past_its_time_is_new(worker: Worker) -> None:
    worker.ask(worker.publishing(key="e-1"))
    worker.clock.advance(DAY)
    assert worker.ask(worker.publishing(key="e-1")) is True


def test_a_number_somebody_else_has_drawn_keeps_nothing(worker: Worker) -> None:
    event = published(worker)
    clash = worker.publishing("other", key="e-1")
    assert clash.insert is not None
    clash = Publish(clash.event._replace(id=event.id), clash.insert._replace(id=event.id))
    assert worker.ask(clash) == Gone()
    assert worker.ask(ListEvents("acme")) == [event]
    assert worker.ask(Peek(ref_of("acme", "event", "e-1").digest)) is None


# -- matching ----------------------------------------------------------------------------------


def test_an_event_settles_the_waits_it_fits(worker: Worker) -> None:
    first, second = waiting(worker), waiting(worker, lies=False)
    worker.clock.advance(3)
    event = published(worker, data=b'{"id":1}')

    woken = match(worker, event, second, first)

    now = worker.clock.now()
    told = Entry(0, Step.EVENT, "shipped", b"p" * 16, False, b'{"id":1}', 1, first.created_at, now)
    assert first.execution is not None
    assert second.execution is not None
    assert woken == [
        Woken(first.execution, True, told, first.id),
        Woken(second.execution, False, told, second.id),
    ]
    settled = worker.promise(id=first.id)
    assert settled == first._replace(
        state=PromiseState.RESOLVED,
        body=event.data,
        settled_by=event_id_of(event.id),
        settled_at=now,
    )
    assert execution_of(worker, first).status is Status.READY
    assert worker.ask(Matched(event.id)) == 2


def test_a_wait_is_settled_by_one_event(worker: Worker) -> None:
    wait = waiting(worker)
    first, second = published(worker), published(worker)
    assert len(match(worker, first, wait)) == 1
    assert match(worker, second, wait) == []
    assert match(worker, first, wait) == []
    assert (worker.ask(Matched(first.id)), worker.ask(Matched(second.id))) == (1, 0)


def test_waits_of_other_tenants_are_not_settled(worker: Worker) -> None:
    wait, other = waiting(worker), worker.of("globex")
    event = published(other)
    assert match(other, event, wait) == []
    assert worker.promise(id=wait.id) == wait


def test_an_event_settles_only_what_waits_for_events(worker: Worker) -> None:
    promise = worker.wait(worker.start(), key="k").promise
    assert match(worker, published(worker), promise) == []
    assert worker.promise(id=promise.id) == promise


def test_what_went_wrong_is_noted_on_the_wait(worker: Worker) -> None:
    wait, done = waiting(worker), waiting(worker)
    event = published(worker)
    match(worker, event, done)
    troubles = ((wait.id, "no such field"), (done.id, "too late"))
    assert match(worker, event, troubles=troubles) == []
    assert worker.promise(id=wait.id) == wait._replace(trouble="no such field")
    settled = worker.promise(id=done.id)
    assert settled is not None
    assert settled.trouble is None


def test_a_wait_of_an_execution_that_is_over_is_not_settled(worker: Worker) -> None:
    wait = waiting(worker, lies=False)
    worker.advance(execution_of(worker, wait), ending=succeeded())
    assert match(worker, published(worker), wait) == []


# -- reading -----------------------------------------------------------------------------------


def test_waits_are_read_by_topic_oldest_first(worker: Worker) -> None:
    first, second = waiting(worker), waiting(worker)
    waiting(worker, "other")
    waiting(worker.of("globex"))
    now = worker.clock.now()
    assert worker.ask(Waits("acme", "shipped", 0, now)) == [first, second]
    assert worker.ask(Waits("acme", "shipped", 0, now, limit=1)) == [first]
    assert worker.ask(Waits("acme", "shipped", first.id, now)) == [second]
    assert worker.ask(Waits("acme", "shipped", 0, now - 1)) == []
    match(worker, published(worker), first)
    assert worker.ask(Waits("acme", "shipped", 0, now)) == [second]


def test_waits_made_later_do_not_count(worker: Worker) -> None:
    first = waiting(worker)
    event = published(worker)
    worker.clock.advance(1)
    waiting(worker)
    assert worker.ask(Waits("acme", "shipped", 0, event.created_at)) == [first]


def test_events_are_read_by_topic_and_time(worker: Worker) -> None:
    first = published(worker)
    worker.clock.advance(10)
    second, other = published(worker), published(worker, "other")
    published(worker.of("globex"))
    since = worker.clock.now()
    assert worker.ask(Events("acme", "shipped", 0)) == [first, second]
    assert worker.ask(Events("acme", "shipped", since)) == [second]
    assert worker.ask(Events("acme", "shipped", 0, after=first.id)) == [second]
    assert worker.ask(ListEvents("acme")) == [other, second, first]
    assert worker.ask(ListEvents("acme", limit=2)) == [other, second]
    assert worker.ask(ListEvents("acme", "shipped")) == [second, first]
    assert len(worker.ask(ListEvents("globex"))) == 1


def test_events_nobody_has_matched_are_found(worker: Worker) -> None:
    first, second = published(worker), published(worker.of("globex"))
    assert worker.ask(Unmatched(worker.clock.now() + 1)) == [first, second]
    assert worker.ask(Matched(first.id)) == 0
    assert worker.ask(Unmatched(worker.clock.now() + 1)) == [second]
    assert worker.ask(ListEvents("acme")) == [first._replace(matched=True)]


def test_an_event_that_is_not_there_has_settled_nothing(worker: Worker) -> None:
    assert worker.ask(Matched(worker.draw())) == 0
