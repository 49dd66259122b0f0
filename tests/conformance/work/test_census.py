"""How much there is of what, counted the same on every store."""

import itertools
from typing import Any

import pytest

from oncekey.compose.ledger import store_of
from oncekey.core.census import Census, Counted
from oncekey.core.execution import PromiseKind, PromiseState, Sort, Status
from oncekey.core.ports import Abandon
from oncekey.stores.work import census
from tests.fixtures.stores import Caller, Place
from tests.fixtures.work import PAUSED, Worker, failed, succeeded


def counted(worker: Worker) -> Counted:
    found: Counted = worker.caller.store.read(Census())
    assert worker.ask(Census()) == found
    return found


def some(kinds: Any, **numbers: int) -> dict[Any, int]:
    return {kind: numbers.get(kind.name.lower(), 0) for kind in kinds}


def test_where_there_is_nothing_everything_is_none(worker: Worker) -> None:
    nothing = Counted(0, None, some(Status), some(Status), some(PromiseState), None, None)
    assert counted(worker) == nothing


def test_claims_are_counted_while_they_are_in_progress(worker: Worker) -> None:
    caller = worker.caller
    settled, abandoned = caller.insert("a"), caller.insert("b")
    first = caller.clock.now()
    caller.ask_all([settled, abandoned])
    caller.clock.advance(5)
    caller.ask(caller.insert("c"))
    caller.ask(caller.settle(settled))
    assert (counted(worker).claims_in_progress, counted(worker).oldest_claim_at) == (2, first)
    caller.ask(Abandon(abandoned.id, 1))
    assert (counted(worker).claims_in_progress, counted(worker).oldest_claim_at) == (2, first)


def test_what_nobody_has_is_counted_however_old_it_is(shared: Place) -> None:
    """What processes claim lies above a floor that rises; an abandoned claim stays where it is."""
    clock = shared.clock
    store = store_of(shared.url, clock)
    store.open(lambda _: 1 << 62)
    caller = Caller(store, clock, itertools.count(clock.now() << 21))
    try:
        abandoned = caller.insert("a")
        caller.ask(abandoned)
        caller.ask(Abandon(abandoned.id, 1))
        assert store.read(Census()).claims_in_progress == 1
    finally:
        store.close()


def test_keys_of_durable_work_are_counted_as_what_they_stand_for(worker: Worker) -> None:
    worker.wait(worker.start("order", "k"), key="p")
    worker.pending("q")
    found = counted(worker)
    assert (found.claims_in_progress, found.oldest_claim_at) == (0, None)
    assert found.promises == some(PromiseState, pending=2)


def test_executions_are_counted_by_sort_and_status(worker: Worker) -> None:
    worker.start(status=Status.READY)
    worker.start()
    began = worker.clock.now()
    worker.clock.advance(5)
    for _ in range(2):
        execution = worker.start()
        worker.wait(execution, advance=worker.advancing(execution, waits=0))
    worker.advance(worker.start(), ending=succeeded())
    worker.advance(worker.start(), ending=failed())
    worker.advance(worker.of("globex").start(), ending=PAUSED)
    worker.control("cancel", worker.start())
    worker.start('mail", 2,"', sort=Sort.TASK)
    found = counted(worker)
    assert found.executions == some(
        Status, ready=1, running=1, waiting=2, succeeded=1, failed=1, paused=1, cancelled=1
    )
    assert found.tasks == some(Status, running=1)
    assert found.oldest_waiting_at == began + 5
    assert found.promises == some(PromiseState, pending=2)


def test_promises_are_counted_by_state(worker: Worker) -> None:
    execution = worker.start()
    due_at = worker.clock.now() + 5
    worker.wait(execution, 0, "sleep", PromiseKind.SLEEP, due_at=due_at)
    first, second = worker.pending(), worker.pending()
    worker.clock.advance(1)
    third = worker.pending()
    worker.wait(execution, 1)
    worker.resolve(worker.target(id=first.id))
    worker.resolve(worker.target(id=second.id), state=PromiseState.REJECTED)
    found = counted(worker)
    assert found.promises == some(PromiseState, resolved=1, rejected=1, pending=2)
    assert found.oldest_pending_at == third.created_at


def test_a_slice_follows_the_other(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [worker.start(), worker.start("mail", sort=Sort.TASK), worker.start()]
    for _ in range(4):
        worker.caller.ask(worker.caller.insert(str(worker.draw())))
    worker.advance(whole[0], ending=succeeded())
    expected = counted(worker)
    for size in (1, 2, 3):
        monkeypatch.setattr(census, "_SLICE", size)
        assert counted(worker) == expected
