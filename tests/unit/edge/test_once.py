"""What was made of a value is that of this value, and of no other that took its place in memory."""

import weakref

from oncekey.edge.once import Once


class Value:
    """Something that is equal only to itself, and whose end can be seen."""


def test_it_is_made_once_for_each_value() -> None:
    made: list[object] = []
    once = Once(lambda value: made.append(value) or len(made))
    one, other = Value(), Value()

    assert [once(one), once(other), once(one), once(other)] == [1, 2, 1, 2]
    assert made == [one, other]


def test_a_value_that_comes_where_another_was_is_another() -> None:
    """Nothing but the memory of it holds each of them: an address that is free is used again."""
    once = Once(lambda value: value[0])

    assert [once((f"{number}",)) for number in range(1000)] == [f"{each}" for each in range(1000)]


def test_no_more_are_held_than_may_be() -> None:
    once = Once(id, most=2)
    values = [Value() for _ in range(5)]
    held = [weakref.ref(value) for value in values]
    for value in values:
        once(value)
    del value
    values.clear()

    assert sum(each() is not None for each in held) <= 2
