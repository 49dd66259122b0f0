"""What every store does for schedules: declared again and again, and each tick taken once."""

import json
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from oncekey.compose.ledger import store_of
from oncekey.core.schedules import (
    DropSchedule,
    DueSchedules,
    FindSchedule,
    KeepSchedule,
    ListSchedules,
    PauseSchedule,
    StoredSchedule,
    TickTaken,
)
from tests.fixtures.frozen import FrozenClock
from tests.fixtures.stores import Caller, Place

HOUR = 3_600_000


def declared(
    name: str = "nightly", *, next_at: int = HOUR, now: int = 0, tenant: str = "acme", **spec: Any
) -> KeepSchedule:
    whole = {"timing": "every 1h", "paused": False, **spec}
    return KeepSchedule(name, tenant, json.dumps(whole), whole["paused"], next_at, now)


def ids(schedules: list[StoredSchedule]) -> list[str]:
    return [each.id for each in schedules]


# -- declaring ---------------------------------------------------------------------------------


def test_a_schedule_is_kept_and_found(caller: Caller) -> None:
    keep = declared(url="http://127.0.0.1/", now=7)
    kept = caller.ask(keep)
    assert kept == StoredSchedule("nightly", "acme", keep.spec, False, HOUR, None, 7)
    assert caller.ask(FindSchedule("nightly")) == kept
    assert caller.ask(FindSchedule("daily")) is None


def test_what_is_declared_again_neither_forgets_nor_moves_a_tick(caller: Caller) -> None:
    caller.ask(declared())
    caller.ask(TickTaken("nightly", HOUR, 2 * HOUR, HOUR, 5))
    again = caller.ask(declared(next_at=9 * HOUR, now=8, url="http://elsewhere/", tenant="other"))
    assert (again.next_at, again.last_at, again.updated_at) == (2 * HOUR, HOUR, 8)
    assert (again.tenant, json.loads(again.spec)["url"]) == ("other", "http://elsewhere/")


def test_another_timing_has_ticks_of_its_own(caller: Caller) -> None:
    caller.ask(declared())
    assert caller.ask(declared(next_at=7 * HOUR, timing="every 7h")).next_at == 7 * HOUR


def test_what_an_operator_paused_stays_so_until_it_is_declared_otherwise(caller: Caller) -> None:
    caller.ask(declared())
    caller.ask(PauseSchedule("nightly", True, 0, 1))
    assert caller.ask(declared(next_at=5 * HOUR)).paused
    assert caller.ask(declared(next_at=5 * HOUR, paused=True)).paused
    again = caller.ask(declared(next_at=6 * HOUR))
    assert (again.paused, again.next_at) == (False, 6 * HOUR)


def test_a_schedule_may_be_declared_paused(caller: Caller) -> None:
    assert caller.ask(declared(paused=True)).paused
    assert caller.ask(DueSchedules(HOUR)).schedules == []


def test_a_schedule_is_dropped_once(caller: Caller) -> None:
    caller.ask(declared())
    assert caller.ask(DropSchedule("nightly")) is True
    assert caller.ask(DropSchedule("nightly")) is False
    assert caller.ask(FindSchedule("nightly")) is None


# -- pausing -----------------------------------------------------------------------------------


def test_a_paused_schedule_is_not_due_and_goes_on_where_it_is_told(caller: Caller) -> None:
    caller.ask(declared())
    paused = caller.ask(PauseSchedule("nightly", True, 9 * HOUR, 1))
    assert (paused.paused, paused.next_at, paused.updated_at) == (True, HOUR, 1)
    assert caller.ask(DueSchedules(5 * HOUR)) == ([], None)
    resumed = caller.ask(PauseSchedule("nightly", False, 6 * HOUR, 2))
    assert (resumed.paused, resumed.next_at) == (False, 6 * HOUR)
    assert ids(caller.ask(DueSchedules(6 * HOUR)).schedules) == ["nightly"]


def test_resuming_what_runs_forgets_no_tick(caller: Caller) -> None:
    caller.ask(declared())
    assert caller.ask(PauseSchedule("nightly", False, 9 * HOUR, 1)).next_at == HOUR


def test_what_is_not_there_cannot_be_paused(caller: Caller) -> None:
    assert caller.ask(PauseSchedule("nightly", True, 0, 1)) is None


# -- listing -----------------------------------------------------------------------------------


def test_a_list_is_in_the_order_of_ids_page_by_page(caller: Caller) -> None:
    for name in ("b", "a", "c", "B", "a-1", "a.1", "a_1"):
        caller.ask(declared(name, tenant="other" if name == "c" else "acme"))
    assert ids(caller.ask(ListSchedules())) == ["B", "a", "a-1", "a.1", "a_1", "b", "c"]
    assert ids(caller.ask(ListSchedules(limit=2))) == ["B", "a"]
    assert ids(caller.ask(ListSchedules(after="a", limit=2))) == ["a-1", "a.1"]
    assert ids(caller.ask(ListSchedules(after="a.1", tenant="other"))) == ["c"]


def test_what_is_due_comes_oldest_tick_first_page_by_page(caller: Caller) -> None:
    for name, tick in (("b", 2), ("a", 2), ("B", 2), ("late", 1), ("far", 9), ("soon", 4)):
        caller.ask(declared(name, next_at=tick * HOUR))
    due = caller.ask(DueSchedules(3 * HOUR, limit=3))
    assert (ids(due.schedules), due.next_at) == (["late", "B", "a"], 4 * HOUR)
    rest = caller.ask(DueSchedules(3 * HOUR, after=(2 * HOUR, "a"), limit=3))
    assert (ids(rest.schedules), rest.next_at) == (["b"], 4 * HOUR)


def test_a_tick_is_due_at_its_very_moment(caller: Caller) -> None:
    caller.ask(declared())
    assert caller.ask(DueSchedules(HOUR - 1)) == ([], HOUR)
    assert ids(caller.ask(DueSchedules(HOUR)).schedules) == ["nightly"]


# -- taking ticks ------------------------------------------------------------------------------


def test_a_tick_is_taken_by_whoever_saw_it_as_the_next(caller: Caller) -> None:
    caller.ask(declared())
    assert caller.ask(TickTaken("nightly", HOUR, 2 * HOUR, HOUR, 5)) is True
    assert caller.ask(TickTaken("nightly", HOUR, 2 * HOUR, HOUR, 6)) is False
    found = caller.ask(FindSchedule("nightly"))
    assert (found.next_at, found.last_at, found.updated_at) == (2 * HOUR, HOUR, 5)


def test_a_tick_without_effect_does_not_count_as_the_last_one(caller: Caller) -> None:
    caller.ask(declared())
    caller.ask(TickTaken("nightly", HOUR, 2 * HOUR, HOUR, 5))
    caller.ask(TickTaken("nightly", 2 * HOUR, 7 * HOUR, None, 6))
    assert caller.ask(FindSchedule("nightly")).last_at == HOUR


def test_a_tick_of_what_is_gone_cannot_be_taken(caller: Caller) -> None:
    assert caller.ask(TickTaken("nightly", HOUR, 2 * HOUR, HOUR, 5)) is False


def test_of_many_who_take_one_tick_one_does(shared: Place) -> None:
    callers = [shared.open(), shared.open()]
    callers[0].ask(declared())
    takes = [TickTaken("nightly", HOUR, (2 + n) * HOUR, HOUR, n) for n in range(10)]
    with ThreadPoolExecutor() as threads:
        answers = threads.map(lambda each: each.ask_all(takes), callers)
    assert sum(taken for each in answers for taken in each) == 1


def test_processes_that_declare_at_once_agree(shared: Place) -> None:
    callers = [shared.open(), shared.open()]
    with ThreadPoolExecutor() as threads:
        kept = list(threads.map(lambda each: each.ask(declared(next_at=HOUR)), callers))
    assert {each.next_at for each in kept} == {HOUR}
    assert len(callers[1].ask(ListSchedules())) == 1


# -- against the oracle ------------------------------------------------------------------------


def _any_request(dice: random.Random, now: int) -> Any:
    name, tick = dice.choice("abc"), dice.randrange(5)
    match dice.randrange(9):
        case 0 | 1:
            timing, paused = dice.choice(["every 1h", "every 2h"]), dice.random() < 0.2
            tenant = dice.choice(["x", "y"])
            return declared(
                name, next_at=tick, now=now, timing=timing, paused=paused, tenant=tenant
            )
        case 2:
            return PauseSchedule(name, dice.random() < 0.5, tick, now)
        case 3 | 4 | 5:
            return TickTaken(name, tick, dice.randrange(5), dice.choice([None, tick]), now)
        case 6:
            return DropSchedule(name) if dice.random() < 0.3 else FindSchedule(name)
        case 7:
            return ListSchedules(dice.choice(["", "a", "b"]), dice.choice([None, "x"]), 2)
        case _:
            return DueSchedules(tick, (dice.randrange(-1, 3), dice.choice("ab")), 2)


@pytest.mark.parametrize("seed", range(10))
def test_every_store_answers_as_the_oracle_does(caller: Caller, seed: int) -> None:
    oracle = Caller(store_of("memory://", FrozenClock()), FrozenClock(), ())
    dice = random.Random(seed)
    for now in range(60):
        request = _any_request(dice, now)
        assert caller.ask(request) == oracle.ask(request), request
