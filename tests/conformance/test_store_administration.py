"""What every store does for operators and timers: listing, sweeping, turns and retention."""

from concurrent.futures import ThreadPoolExecutor

from oncekey.core.model import Kind, Outcome, State
from oncekey.core.ports import Abandon, Held, Insert, Peek, Query, Take
from tests.fixtures.stores import DAY, Caller, Place

OTHER = "t-other:_tenant:client:a"


def claim(caller: Caller, key: str, **options: str | int) -> Insert:
    insert = caller.insert(key, **options)
    assert caller.ask(insert) == Held(1)
    return insert


def finish(caller: Caller, key: str, *, status: int = 200, **options: str | int) -> Insert:
    insert = claim(caller, key, **options)
    outcome = Outcome(Kind.RESPONSE, status)
    assert caller.ask(caller.settle(insert, outcome=outcome)) is True
    return insert


def keys(caller: Caller, **query: object) -> list[str]:
    found = caller.store.list(Query(**query), caller.clock.now())
    return [each.record.ref.key for each in found]


def sweep_all(caller: Caller) -> int:
    total = 0
    while swept := caller.store.sweep(caller.clock.now(), 10):
        total += swept
    return total


# -- listing -----------------------------------------------------------------------------------


def test_a_page_is_newest_first_and_the_next_goes_on_below(caller: Caller) -> None:
    inserts = [finish(caller, f"k-{number}") for number in range(5)]

    assert keys(caller, limit=3) == ["k-4", "k-3", "k-2"]
    assert keys(caller, limit=3, before=inserts[2].id) == ["k-1", "k-0"]


def test_a_list_keeps_to_what_was_asked(caller: Caller) -> None:
    finish(caller, "order-1")
    finish(caller, "order-2", status=422)
    claim(caller, "order-3")
    finish(caller, "100%_sure")
    finish(caller, "order-4", namespace=OTHER)

    assert keys(caller, state=State.SUCCEEDED, prefix="order") == ["order-4", "order-1"]
    assert keys(caller, state=State.FAILED) == ["order-2"]
    assert keys(caller, state=State.IN_PROGRESS) == ["order-3"]
    assert keys(caller, namespace=OTHER) == ["order-4"]
    assert keys(caller, prefix="100%_") == ["100%_sure"]
    assert keys(caller, prefix="1%") == []


def test_a_list_keeps_to_a_tenant_a_project_an_endpoint_and_a_time(caller: Caller) -> None:
    places = {
        "a": ("t-acme:web:user:1", "POST /orders"),
        "b": ("t-acme:app:user:1", "POST /orders"),
        "c": ("t-acme_:web:user:1", "POST /orders"),
        "d": ("t-acme:web:user:2", "POST /orders#body"),
    }
    made = {
        key: finish(caller, key, namespace=namespace, endpoint=endpoint)
        for key, (namespace, endpoint) in places.items()
    }
    last = claim(caller, "e", namespace="t-acme:web:user:1", endpoint="POST /orders")

    assert keys(caller, within="t-acme:") == ["e", "d", "b", "a"]
    assert keys(caller, within="t-acme:web:") == ["e", "d", "a"]
    assert keys(caller, endpoint="POST /orders") == ["e", "c", "b", "a"]
    assert keys(caller, after=made["c"].id) == ["e", "d"]
    running = {"state": State.IN_PROGRESS}
    assert keys(caller, **running, within="t-acme:web:") == ["e"]
    assert keys(caller, **running, within="t-other:") == []
    assert keys(caller, **running, endpoint="POST /orders") == ["e"]
    assert keys(caller, **running, endpoint="POST /others") == []
    assert keys(caller, **running, after=last.id) == []
    assert keys(caller, within="t-acm%") == keys(caller, endpoint="POST") == []
    assert keys(caller, after=made["a"].id, before=made["d"].id) == ["c", "b"]


def test_what_is_in_flight_is_listed_with_whether_its_holder_is_gone(caller: Caller) -> None:
    live, dead, taken = (claim(caller, key) for key in ("live", "dead", "taken"))
    caller.ask(Abandon(dead.id, 1))
    caller.ask(Abandon(taken.id, 1))
    caller.ask(Take(taken.id, taken.digest, 1))

    found = caller.store.list(Query(state=State.IN_PROGRESS), caller.clock.now())

    seen = {each.record.id: (each.record.fence, each.lapsed) for each in found}
    assert seen == {live.id: (1, False), dead.id: (1, True), taken.id: (2, False)}
    assert keys(caller, state=State.IN_PROGRESS, before=dead.id) == ["live"]
    assert keys(caller, state=State.IN_PROGRESS, prefix="d", namespace=OTHER) == []


def test_an_expired_record_is_not_listed(caller: Caller) -> None:
    finish(caller, "k", kept=1000)
    caller.clock.advance(999)
    assert keys(caller) == ["k"]
    caller.clock.advance(1)
    assert keys(caller) == []


# -- sweeping ----------------------------------------------------------------------------------


def test_a_sweep_deletes_what_is_expired_in_batches_and_nothing_else(caller: Caller) -> None:
    old = [finish(caller, f"old-{number}", kept=1000) for number in range(5)]
    finish(caller, "young", kept=1001)
    claim(caller, "running", kept=1000)
    caller.clock.advance(1000)
    now = caller.clock.now()

    assert caller.store.count_expired(now) == 5
    assert [caller.store.sweep(now, 2) for _ in range(4)] == [2, 2, 1, 0]

    assert caller.store.count_expired(now) == 0
    assert all(caller.ask(Peek(None, insert.id)) is None for insert in old)
    assert keys(caller) == ["running", "young"]
    assert caller.ask_all([caller.insert(f"old-{n}") for n in range(5)]) == [Held(1)] * 5


def test_a_sweep_takes_claims_that_were_left_behind(caller: Caller) -> None:
    inserts = [claim(caller, f"k-{number}", kept=1000) for number in range(3)]
    for insert in inserts[:2]:
        caller.ask(Abandon(insert.id, 1))

    caller.clock.advance(999)
    early = caller.store.sweep(caller.clock.now(), 10)
    caller.clock.advance(1)

    assert early == 0
    assert caller.store.count_expired(caller.clock.now()) == 2
    assert caller.store.sweep(caller.clock.now(), 10) == 2
    assert keys(caller) == ["k-2"]


def test_a_sweep_finds_the_dead_behind_any_number_of_living(caller: Caller) -> None:
    caller.ask_all([caller.insert(f"live-{number}", kept=1) for number in range(300)])
    dead = claim(caller, "dead", kept=1)
    caller.ask(Abandon(dead.id, 1))
    caller.clock.advance(1)
    assert caller.store.sweep(caller.clock.now(), 10) == 1
    assert caller.ask(Peek(dead.digest)) is None


# -- turns and retention -----------------------------------------------------------------------


def test_a_turn_comes_once_per_interval(caller: Caller) -> None:
    now = caller.clock.now()
    asked = [now, now, now + 299, now + 300, now + 301, now + 600]
    assert [caller.store.sweep_due(at, 300) for at in asked] == [
        True,
        False,
        False,
        True,
        False,
        True,
    ]


def test_retention_is_remembered(caller: Caller) -> None:
    assert caller.store.retention() == {}
    caller.store.set_retention("interactive", 60.5)
    caller.store.set_retention("webhook", DAY)
    caller.store.set_retention("interactive", 30)
    assert caller.store.retention() == {"interactive": 30.0, "webhook": float(DAY)}


def test_processes_share_turns_and_retention(shared: Place) -> None:
    first, second = shared.open(), shared.open()
    now = shared.clock.now()

    assert first.store.sweep_due(now, 300)
    assert not second.store.sweep_due(now, 300)
    first.store.set_retention("interactive", 60)
    assert second.store.retention() == {"interactive": 60.0}


def test_a_process_that_starts_learns_the_classes(shared: Place) -> None:
    shared.open().store.set_retention("audit", 60)
    shared.retention.clear()
    shared.open()
    assert shared.retention == {"audit": 60.0}


def test_two_sweeps_at_once_delete_each_record_once(shared: Place) -> None:
    callers = [shared.open(), shared.open()]
    inserts = [callers[0].insert(f"k-{number}", kept=1) for number in range(300)]
    callers[0].ask_all(list(inserts))
    callers[0].ask_all([callers[0].settle(insert) for insert in inserts])
    shared.clock.advance(1)

    with ThreadPoolExecutor() as threads:
        swept = list(threads.map(sweep_all, callers))

    assert sum(swept) == 300
    assert callers[0].store.count_expired(shared.clock.now()) == 0
