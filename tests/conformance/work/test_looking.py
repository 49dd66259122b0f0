"""Lists of what is rare: window after window, and nothing is left out or told twice."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from oncekey.compose.ledger import store_of
from oncekey.core.audit import AuditEntry, KeepAudit, ListAudit
from oncekey.core.deliveries import KeepDeliveries, ListDeliveries, LoggedDelivery
from oncekey.core.execution import PromiseState, Sort, Status
from oncekey.core.looking import Looked
from oncekey.core.model import Kind, Outcome, State
from oncekey.core.ports import Abandon, Query
from oncekey.core.work import ListEvents, ListExecutions, ListPromises
from oncekey.stores import windows
from tests.fixtures.stores import Caller, Place
from tests.fixtures.work import PAUSED, Worker, failed, succeeded

Ask = Callable[[Any], Looked[Any]]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "_FIRST", 2)
    monkeypatch.setattr(windows, "_LARGEST", 3)


def paged(ask: Ask, query: Any) -> list[int]:
    """Everything, page after page, with a number for each."""
    found: list[int] = []
    before: int | None = None
    while True:
        page = ask(query._replace(before=before))
        found += [_number_of(each) for each in page]
        assert len(page) == query.limit or page.to is not None or _ends(ask, query, found)
        before = page.to if page.to is not None else found[-1] if page else None
        if before is None or (page.to is None and len(page) < query.limit):
            return found


def _ends(ask: Ask, query: Any, found: list[int]) -> bool:
    return not found or not ask(query._replace(before=found[-1], look=None))


def _number_of(each: Any) -> int:
    return int(each.record.id if hasattr(each, "record") else each.id)


def whole(ask: Ask, query: Any) -> list[int]:
    """As it is told at once; and in pages of every size, however little is looked at each time."""
    at_once = ask(query._replace(limit=1000))
    assert at_once.to is None
    expected = [_number_of(each) for each in at_once]
    assert expected == sorted(expected, reverse=True)
    for limit, look in itertools.product((1, 2, 50), (None, 1, 2, 3, 7)):
        assert paged(ask, query._replace(limit=limit, look=look)) == expected
    return expected


@pytest.fixture
def keys(place: Place) -> Caller:
    """Nine keys in the order of their numbers: three settled, two in flight, and so on."""
    caller = place.open()
    for number in range(9):
        tenant = "acme" if number % 4 else "globex"
        insert = caller.insert(
            f"key-{number}",
            namespace=f"t-{tenant}:_tenant:client:anonymous",
            endpoint="POST /orders" if number % 3 else "POST /refunds",
        )
        caller.ask(insert)
        if number in {0, 3, 6}:
            outcome = Outcome(Kind.RESPONSE, 200 if number else 500, ((b"a", b"b"),), b"body")
            caller.ask(caller.settle(insert, outcome=outcome))
        elif number in {1, 8}:
            caller.ask(Abandon(insert.id, 1))
    return caller


@pytest.mark.parametrize(
    "asked, expected",
    [
        ({}, "876543210"),
        ({"state": State.IN_PROGRESS}, "875421"),
        ({"state": State.SUCCEEDED}, "63"),
        ({"state": State.FAILED}, "0"),
        ({"state": State.PROMISE}, ""),
        ({"within": "t-globex:"}, "840"),
        ({"namespace": "t-globex:_tenant:client:anonymous"}, "840"),
        ({"endpoint": "POST /refunds"}, "630"),
        ({"prefix": "key-7"}, "7"),
        ({"prefix": "nothing"}, ""),
        ({"key": "key-5"}, "5"),
        ({"key": "key-"}, ""),
        ({"key": "key-4", "within": "t-globex:", "state": State.IN_PROGRESS}, "4"),
    ],
)
def test_keys_are_found_however_little_is_looked_at(
    keys: Caller, asked: dict[str, Any], expected: str
) -> None:
    def ask(query: Query) -> Looked[Any]:
        return keys.store.list(query, keys.clock.now())

    numbers = {each.record.id: each.record.ref.key[-1] for each in ask(Query(limit=9))}
    assert "".join(numbers[number] for number in whole(ask, Query(**asked))) == expected


def test_a_list_of_keys_has_no_answers(keys: Caller) -> None:
    found = keys.store.list(Query(State.FAILED), keys.clock.now())
    (record,) = (each.record for each in found)
    assert record.outcome == Outcome(Kind.RESPONSE, 500)
    assert record.completed_at is not None


def test_what_is_in_progress_is_found_on_both_sides_of_the_floor(database: Place) -> None:
    """What processes claim lies above a floor that rises; what nobody has stays where it is."""
    floor = [0]
    store = store_of(database.url, database.clock)
    store.open(lambda _: floor[0])
    caller = Caller(store, database.clock, itertools.count(1 << 60))
    try:
        for number in range(6):
            insert = caller.insert(str(number))
            caller.ask(insert)
            if number < 3:
                caller.ask(Abandon(insert.id, 1) if number else caller.settle(insert))
        worker = Worker(caller)
        worker.start("order", "k")
        worker.pending("p")
        # Above everything that a process claimed, but for the last.
        database.execute(f"UPDATE oncekey_owners SET floor = {(1 << 60) + 5}")

        def ask(query: Query) -> Looked[Any]:
            return store.list(query, caller.clock.now())

        def told(state: State) -> list[str]:
            names = {each.record.id: each.record.ref.key for each in ask(Query())}
            return [names[number] for number in whole(ask, Query(state))]

        assert told(State.IN_PROGRESS) == ["k", "5", "2", "1"]
        assert told(State.PROMISE) == ["p"]
    finally:
        store.close()


@pytest.fixture
def busy(worker: Worker) -> Worker:
    other = worker.of("globex")
    for number in range(3):
        worker.start("order", status=Status.READY)
        worker.start("order" if number else "rare")
        waiting = other.start("order")
        worker.ask(other.awaiting(waiting, advance=other.advancing(waiting, waits=0)))
        worker.advance(worker.start("order"), ending=succeeded())
        worker.advance(worker.start("mail", sort=Sort.TASK), ending=failed())
        worker.advance(other.start("order"), ending=PAUSED)
        promise = worker.pending(f"p-{number}")
        if number:
            worker.resolve(worker.target(id=promise.id))
    return worker


@pytest.mark.parametrize("tenant", [None, "acme", "globex", "nobody"])
def test_executions_are_found_however_little_is_looked_at(busy: Worker, tenant: str | None) -> None:
    ask = busy.caller.store.read
    everything = ask(ListExecutions(tenant, limit=100))
    for status in (None, *Status):
        for name, sort in itertools.product((None, "rare", "mail"), (None, *Sort)):
            query = ListExecutions(tenant, status, name, sort)
            expected = [
                each.id
                for each in everything
                if status in {None, each.status}
                and name in {None, each.name}
                and sort in {None, each.sort}
            ]
            assert paged(ask, query._replace(limit=2, look=2)) == expected
            assert paged(ask, query._replace(limit=2)) == expected


@pytest.mark.parametrize("tenant", [None, "acme", "globex"])
def test_promises_are_found_however_little_is_looked_at(busy: Worker, tenant: str | None) -> None:
    ask = busy.caller.store.read
    everything = ask(ListPromises(tenant, limit=100))
    assert len(everything) == {None: 6, "acme": 3, "globex": 3}[tenant]
    for state in (None, PromiseState.PENDING, PromiseState.RESOLVED, PromiseState.REJECTED):
        expected = [each.id for each in everything if state in {None, each.state}]
        assert whole(ask, ListPromises(tenant, state)) == expected
    expected = [each.id for each in everything if each.key == "p-1"]
    assert whole(ask, ListPromises(tenant, key="p-1")) == expected


def test_events_are_found_however_little_is_looked_at(worker: Worker) -> None:
    made = [
        worker.of(tenant).publishing(topic).event
        for tenant, topic in itertools.product(("acme", "globex"), ("a", "b", "a", "c"))
    ]
    for event in made:
        worker.ask(worker.publishing(**event._asdict()))
    for tenant, topic in itertools.product((None, "acme", "globex"), (None, "a", "b", "d")):
        expected = [
            each.id
            for each in reversed(made)
            if tenant in {None, each.tenant} and topic in {None, each.topic}
        ]
        assert whole(worker.caller.store.read, ListEvents(tenant, topic)) == expected


def test_deliveries_are_found_however_little_is_looked_at(place: Place) -> None:
    caller = place.open()
    lines = [
        LoggedDelivery(
            number,
            "wh_a" if number % 3 else "wh_b",
            7,
            "accepted" if number % 4 else "refused",
            'evt_"%' if number in {2, 3} else f"evt_{number}",
            operation=number // 2 if number % 4 else None,
        )
        for number in range(1, 9)
    ]
    caller.ask(KeepDeliveries(tuple(lines)))

    def found(**asked: Any) -> str:
        query = ListDeliveries(asked.pop("webhook", None), **asked)
        return "".join(map(str, whole(caller.store.read, query)))

    assert found() == "87654321"
    assert found(webhook="wh_b") == "63"
    assert found(verdict="refused") == "84"
    assert found(webhook="wh_a", verdict="refused") == "84"
    assert found(webhook="wh_b", verdict="refused") == ""
    assert found(identifier='evt_"%') == "32"
    assert found(webhook="wh_b", identifier='evt_"%') == "3"
    assert found(operation=3) == "76"
    assert found(operation=3, webhook="wh_b") == "6"
    assert found(operation=3, verdict="refused") == ""
    assert found(operation=8) == ""


def test_the_audit_feed_is_searched_however_little_is_looked_at(place: Place) -> None:
    caller = place.open()
    for number in range(1, 8):
        tenant = "acme" if number % 2 else None
        actor = "cli:ann" if number % 3 else "admin:ak_1"
        entry = AuditEntry(number, 7, actor, "key.purge", f"op_{number}", tenant, "{}")
        caller.ask(KeepAudit(entry))

    def found(**asked: Any) -> str:
        return "".join(map(str, whole(caller.store.read, ListAudit(**asked))))

    assert found() == "7654321"
    assert found(actor="admin:ak_1") == "63"
    assert found(actor="admin:ak_1", tenant="acme") == "3"
    assert found(action="key.purge", target="op_5") == "5"
    assert found(action="key") == ""
