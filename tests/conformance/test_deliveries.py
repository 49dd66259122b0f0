"""The log of deliveries, the same on every store."""

from typing import Any

from oncekey.core.deliveries import KeepDeliveries, ListDeliveries, LoggedDelivery
from tests.fixtures.stores import DAY, Caller, Place

ONE, OTHER = f"wh_{'a' * 30}", f"wh_{'b' * 30}"


def logged(number: int, webhook: str = ONE, **others: Any) -> LoggedDelivery:
    whole = LoggedDelivery(number, webhook, 7, "accepted", f"evt_{number}", expires_at=DAY)
    return whole._replace(**others)


def keep(caller: Caller, *deliveries: LoggedDelivery) -> None:
    assert caller.ask(KeepDeliveries(deliveries)) is True


def test_a_line_is_listed_as_it_was_kept(caller: Caller) -> None:
    whole = logged(
        1, verdict="refused", reason="not signed ✗", operation=1 << 62, size=1 << 33, times=40
    )
    keep(caller, whole)

    assert caller.ask(ListDeliveries(ONE)) == [whole]


def test_a_page_is_of_one_webhook_and_newest_first(caller: Caller) -> None:
    keep(caller, logged(1), logged(3), logged(2, OTHER), logged(4))

    assert caller.ask(ListDeliveries(ONE)) == [logged(4), logged(3), logged(1)]
    assert caller.ask(ListDeliveries(ONE, limit=2)) == [logged(4), logged(3)]
    assert caller.ask(ListDeliveries(ONE, before=3)) == [logged(1)]
    assert caller.ask(ListDeliveries(OTHER)) == [logged(2, OTHER)]
    assert caller.ask(ListDeliveries("wh_none")) == []


def test_what_is_kept_again_is_there_once(caller: Caller) -> None:
    keep(caller, logged(1))
    keep(caller, logged(1), logged(2))

    assert caller.ask(ListDeliveries(ONE)) == [logged(2), logged(1)]


def test_the_sweep_takes_what_is_past_its_time(caller: Caller) -> None:
    keep(caller, *(logged(number, expires_at=number) for number in range(1, 6)))
    assert caller.store.count_expired(3) == 3

    assert caller.store.sweep(3, 2) == 2
    assert caller.store.sweep(3, 2) == 1
    assert caller.store.sweep(3, 2) == 0
    assert [each.id for each in caller.ask(ListDeliveries(ONE))] == [5, 4]


def test_the_sweep_takes_lines_and_outcomes(caller: Caller) -> None:
    insert = caller.insert("k", kept=0)
    caller.ask(insert)
    caller.ask(caller.settle(insert))
    keep(caller, logged(1, expires_at=caller.clock.now()))
    assert caller.store.count_expired(caller.clock.now()) == 2

    assert [caller.store.sweep(caller.clock.now(), 100) for _ in range(3)] == [1, 1, 0]


def test_lines_go_into_one_group_with_claims(caller: Caller) -> None:
    asked = [caller.insert("k"), KeepDeliveries((logged(1), logged(2)))]

    assert caller.ask_all(asked)[1] is True
    assert len(caller.ask(ListDeliveries(ONE))) == 2


def test_another_process_sees_what_one_has_kept(shared: Place) -> None:
    keep(shared.open(), logged(1))

    assert shared.open().ask(ListDeliveries(ONE)) == [logged(1)]
