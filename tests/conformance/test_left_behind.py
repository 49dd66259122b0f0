"""What dead processes left behind is looked for a window at a time, and nobody waits meanwhile."""

from collections.abc import Callable
from typing import Any

import pytest

from oncekey.core.ports import Settle
from oncekey.stores import left_behind
from oncekey.stores.administration import Administration, Run
from tests.fixtures.stores import DONE, Caller, Place

SETTLED = 95


@pytest.fixture
def looked(database: Place, monkeypatch: pytest.MonkeyPatch) -> tuple[Caller, "Looked"]:
    """Windows of ten, in a store with many claims that came after the floor of one who is gone."""
    monkeypatch.setattr(left_behind, "WINDOW", 10)
    gone, caller = database.open(), database.open()
    held = gone.insert("held", kept=1000)
    gone.ask(held)
    inserts = [caller.insert(f"k-{number}", kept=100_000) for number in range(SETTLED)]
    caller.ask_all(inserts)
    now = caller.clock.now()
    caller.ask_all([Settle(each.id, 1, DONE, now, now + 100_000) for each in inserts])
    gone.store.close()
    return caller, Looked(caller.store)


class Looked:
    """A store's administration, with a note of what it asks for in which transaction."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.read: list[tuple[str, dict[str, Any]]] = []
        self.written: list[str] = []
        self.administration = Administration(self._transact, store.setting, store._bury)

    def _transact(self, work: Callable[[Run], Any], *, write: bool, durable: bool = False) -> Any:
        def noting(run: Run) -> Any:
            def noted(name: str, values: dict[str, Any]) -> Any:
                if write:
                    self.written.append(name)
                else:
                    self.read.append((name, values))
                return run(name, values)

            return work(noted)

        return self._store.transact(noting, write=write, durable=durable)


def windows(looked: Looked, name: str) -> list[tuple[int, int]]:
    return [(each["since"], each["to"]) for query, each in looked.read if query == name]


def test_nobody_waits_while_it_is_looked_for(looked: tuple[Caller, Looked]) -> None:
    caller, administration = looked
    assert administration.administration.sweep(caller.clock.now(), 10) == 0
    assert set(administration.written) == {"sweep", "sweep_deliveries"}


def test_it_is_looked_for_once_the_first_of_it_is_past_its_time(
    looked: tuple[Caller, Looked],
) -> None:
    caller, administration = looked
    administration.administration.sweep(caller.clock.now(), 10)
    assert windows(administration, "expired_claims") == []
    caller.clock.advance(1000)
    assert administration.administration.sweep(caller.clock.now(), 10) == 1
    assert windows(administration, "expired_claims")


def test_it_is_looked_for_a_window_at_a_time(looked: tuple[Caller, Looked]) -> None:
    caller, administration = looked
    caller.clock.advance(1000)
    administration.administration.sweep(caller.clock.now(), 10)
    seen = windows(administration, "expired_claims")
    assert len(seen) == (SETTLED + 1) // 10 + 1
    assert [to for _, to in seen[:-1]] == [since for since, _ in seen[1:]]


def test_who_holds_something_is_found_in_the_first_window(looked: tuple[Caller, Looked]) -> None:
    caller, administration = looked
    administration.administration.sweep(caller.clock.now(), 10)
    assert len(set(windows(administration, "first_held"))) == 1


def test_what_is_found_is_forgotten_with_its_holder(looked: tuple[Caller, Looked]) -> None:
    caller, administration = looked
    caller.clock.advance(1000)
    now = caller.clock.now()
    assert administration.administration.count_expired(now) == 1
    assert [administration.administration.sweep(now, 10) for _ in range(2)] == [1, 0]
    assert "forget_expired" in administration.written
    assert administration.written[-1] == "forget_owner"
    assert len(caller.store.transact(lambda run: run("owners", {}), write=False)) == 1  # type: ignore[attr-defined]


def test_all_who_are_gone_are_looked_for_at_once(database: Place) -> None:
    """A fleet that was killed: one look behind all of them, and each is told by what it holds."""
    fleet = [database.open() for _ in range(4)]
    caller = database.open()
    for number, each in enumerate(fleet[:3]):
        each.ask(each.insert(f"held-{number}", kept=1000 * (number + 1)))
        each.ask(each.insert(f"later-{number}", kept=100))
    fleet[1].ask(fleet[1].insert("last", kept=50))
    for each in fleet:
        each.store.close()
    looked = Looked(caller.store)

    gone = looked.administration._dead()
    now = caller.clock.now()
    assert sorted(each.until - now for each in gone if each.until) == [1000, 2000, 3000]
    assert [each.until for each in gone].count(None) == 1
    assert len(windows(looked, "first_held")) == 1
