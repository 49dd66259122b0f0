"""Numbers of operations: ordered, unique, and readable both ways."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncekey.core.identifier import OperationNumbers, first_number
from oncekey.core.model import number_of, operation_id_of

NOW = 1_800_000_000_000
steps = st.lists(st.integers(-5000, 5000), max_size=50)


@given(steps, st.integers(0, (1 << 20) - 1))
def test_each_number_is_greater_even_when_the_clock_steps_back(
    moves: list[int], random: int
) -> None:
    numbers, now, last = OperationNumbers(lambda bits: random), NOW, 0
    for move in [0, *moves, 0]:
        now += move
        drawn = numbers.draw(now)
        assert drawn > last
        last = drawn


def test_numbers_of_one_millisecond_follow_each_other() -> None:
    numbers = OperationNumbers(lambda bits: 7)
    first = numbers.draw(NOW)
    assert first >> 21 == NOW
    assert [numbers.draw(NOW) for _ in range(3)] == [first + 1, first + 2, first + 3]


def test_two_processes_start_at_random_places() -> None:
    places = iter([3, 5])
    one, two = OperationNumbers(lambda bits: next(places)), OperationNumbers(lambda b: next(places))
    assert one.draw(NOW) != two.draw(NOW)


def test_a_number_fits_a_signed_column_for_a_century() -> None:
    in_a_century = NOW + 100 * 365 * 86400 * 1000 // 4
    assert OperationNumbers(lambda bits: (1 << bits) - 1).draw(in_a_century) < 1 << 63


def test_nothing_lower_than_the_floor_is_drawn_later() -> None:
    numbers = OperationNumbers(lambda bits: 0)
    numbers.draw(NOW)
    floor = numbers.floor(NOW)
    assert numbers.draw(NOW - 1000) >= floor


def test_the_floor_rises_with_time() -> None:
    numbers = OperationNumbers(lambda bits: 5000)
    floors = [numbers.floor(NOW + each) for each in range(3)]
    assert floors == [first_number(NOW + each) for each in range(3)]
    assert numbers.draw(NOW) > floors[-1]
    # Two processes that give a sign of life in the same millisecond still go other ways.
    assert numbers.draw(NOW + 3) == first_number(NOW + 3) + 5000


def test_threads_never_draw_the_same() -> None:
    numbers = OperationNumbers(lambda bits: 0)
    drawn: list[list[int]] = [[] for _ in range(4)]

    def draw(into: list[int]) -> None:
        into.extend(numbers.draw(NOW) for _ in range(2000))

    threads = [threading.Thread(target=draw, args=(into,)) for into in drawn]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    everything = [number for each in drawn for number in each]
    assert len(set(everything)) == len(everything)


@given(st.integers(0, (1 << 63) - 1))
def test_an_operation_id_reads_back(number: int) -> None:
    assert number_of(operation_id_of(number)) == number


@given(st.integers(0, (1 << 63) - 1), st.integers(0, (1 << 63) - 1))
def test_operation_ids_sort_as_their_numbers(one: int, two: int) -> None:
    assert (one < two) is (operation_id_of(one) < operation_id_of(two))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "op_",
        "op_343c2821b56ac57",
        "op_343c2821b56ac5733",
        "op_343C2821B56AC573",
        "op_8000000000000000",
        "op_343c2821b56ac57g",
        "343c2821b56ac573",
        "op_343c2821b56ac573\n",
        "op_٣43c2821b56ac573",
    ],
)
def test_what_is_no_operation_id(text: str) -> None:
    assert number_of(text) is None
