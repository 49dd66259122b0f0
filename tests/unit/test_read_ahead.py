"""Waits that were read ahead: given once, in their order, and never older than a first page."""

from oncekey.core.execution import Promise, PromiseKind, PromiseState
from oncekey.core.work import Waits
from oncekey.stores.restate.ahead import ReadAhead

FIRST = Waits("acme", "shipped", 0, 7, limit=2)


def waits(*numbers: int) -> list[Promise]:
    return [
        Promise(number, "acme", PromiseKind.EVENT, "shipped", PromiseState.PENDING, 7)
        for number in numbers
    ]


def read(ahead: ReadAhead, *numbers: int, asked: Waits = FIRST, is_all: bool = True) -> list[int]:
    assert ahead.next_page(asked) is None
    return ids(ahead.keep(ahead.turn(), asked, waits(*numbers), is_all=is_all))


def ids(page: list[Promise] | None) -> list[int]:
    assert page is not None
    return [wait.id for wait in page]


def test_pages_that_follow_need_no_reading() -> None:
    ahead = ReadAhead()
    assert read(ahead, 1, 2, 3) == [1, 2]
    assert ids(ahead.next_page(FIRST._replace(after=2))) == [3]
    assert ahead.next_page(FIRST._replace(after=3)) == []


def test_a_first_page_is_read_anew() -> None:
    ahead = ReadAhead()
    read(ahead, 1, 2, 3)
    assert ahead.next_page(FIRST) is None


def test_what_was_given_is_not_given_again() -> None:
    ahead = ReadAhead()
    read(ahead, 1, 2, 3)
    second = FIRST._replace(after=2)
    assert ids(ahead.next_page(second)) == [3]
    assert ahead.next_page(second) is None


def test_the_end_of_a_part_is_not_the_end_of_all() -> None:
    ahead = ReadAhead()
    assert read(ahead, 1, 2, is_all=False) == [1, 2]
    assert read(ahead, 3, asked=FIRST._replace(after=2)) == [3]
    assert ahead.next_page(FIRST._replace(after=3)) == []


def test_other_topics_tenants_and_times_do_not_follow() -> None:
    ahead = ReadAhead()
    read(ahead, 1, 2, 3)
    follows = FIRST._replace(after=2)
    assert ahead.next_page(follows._replace(topic="other")) is None
    assert ahead.next_page(follows._replace(tenant="globex")) is None
    assert ahead.next_page(follows._replace(until=8)) is None
    assert ahead.next_page(follows._replace(after=1)) is None
    assert ids(ahead.next_page(follows)) == [3]


def test_an_answer_that_comes_late_does_not_replace_what_was_read_after_it() -> None:
    """The reader of the later one has kept an event that the earlier one may not know of."""
    ahead = ReadAhead()
    earlier, later = ahead.turn(), ahead.turn()
    ahead.keep(later, FIRST, waits(1, 2, 3), is_all=True)
    assert ids(ahead.keep(earlier, FIRST, waits(1, 2), is_all=True)) == [1, 2]
    assert ids(ahead.next_page(FIRST._replace(after=2))) == [3]


def test_little_is_kept_of_matches_nobody_goes_on_with() -> None:
    ahead = ReadAhead()
    for until in range(100):
        read(ahead, 1, 2, 3, asked=FIRST._replace(until=until))
    follows = FIRST._replace(after=2)
    kept = [until for until in range(100) if ahead.next_page(follows._replace(until=until))]
    assert kept == list(range(84, 100))
