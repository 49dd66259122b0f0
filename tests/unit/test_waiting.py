"""A task that is cancelled leaves its answer to an heir, whenever the answer comes."""

from typing import Any

import pytest

from oncekey.core.waiting import waiter_for

pytestmark = pytest.mark.anyio


@pytest.fixture
def told() -> list[tuple[Any, Any]]:
    return []


async def test_an_answer_that_had_come_goes_to_the_heir(told: list[tuple[Any, Any]]) -> None:
    waiter = waiter_for("request", lambda *answer: told.append(answer))
    waiter.resolve("answer")
    waiter.desert()
    assert told == [("request", "answer")]


async def test_an_answer_that_comes_later_goes_to_the_heir(told: list[tuple[Any, Any]]) -> None:
    waiter = waiter_for("request", lambda *answer: told.append(answer))
    waiter.desert()
    assert told == []
    waiter.resolve("answer")
    assert told == [("request", "answer")]


async def test_an_answer_somebody_waits_for_is_not_inherited(told: list[tuple[Any, Any]]) -> None:
    waiter = waiter_for("request", lambda *answer: told.append(answer))
    waiter.resolve("answer")
    assert await waiter.future == "answer"
    assert told == []
