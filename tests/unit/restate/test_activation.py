"""What Restate has asked for waits for room here: first come first, and nobody for another's."""

import pytest

from oncekey.core.execution import Sort
from oncekey.durable.restate.activation import Activation, Queue

pytestmark = pytest.mark.anyio

ONE, TWO = (Sort.WORKFLOW, "one"), (Sort.TASK, "two")


def taken(queue: Queue, *full: tuple[Sort, str]) -> list[int]:
    found = []
    while (activation := queue.take(lambda place: place not in full)) is not None:
        found.append(activation.number)
    return found


async def test_the_first_is_taken_first_whatever_it_is() -> None:
    queue = Queue()
    for number, place in enumerate([ONE, TWO, TWO, ONE]):
        queue.put(Activation(place, number, 1))
    assert queue
    assert taken(queue) == [0, 1, 2, 3]
    assert not queue


async def test_one_that_is_full_is_in_nobodys_way() -> None:
    queue = Queue()
    for number, place in enumerate([ONE, ONE, TWO, TWO]):
        queue.put(Activation(place, number, 1))
    assert taken(queue, ONE) == [2, 3]
    assert queue
    assert taken(queue, TWO) == [0, 1]


async def test_an_activation_rests_once() -> None:
    activation = Activation(ONE, 1, 1)
    activation.rests(None)
    activation.rests(5.0)
    assert await activation.over is None
