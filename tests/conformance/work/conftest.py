"""Processes that run durable work, on every kind of store."""

import pytest

from tests.fixtures.quiet import opened
from tests.fixtures.stores import Place
from tests.fixtures.work import Worker

# What Restate does in another way: the tests that cannot hold there, and why.
LEFT_OUT = {
    "test_a_number_somebody_else_has_drawn_makes_nothing": "a promise is one of its execution's",
    "test_a_number_somebody_else_has_drawn": "a promise is one of its execution's",
    "test_a_request_key_whose_number_is_taken_settles_nothing": "a claim is one of its key's",
    "test_names_that_can_be_started_are_known_from_then_on": "whoever serves a name makes it known",
    "test_what_began_a_little_later_is_left_alone": "Restate keeps the time",
    "test_what_began_while_the_clock_was_ahead_begins_anew": "Restate keeps the time",
    "test_what_was_published_ends_with_its_time": "an event ends by itself",
}


@pytest.fixture
def worker(place: Place, request: pytest.FixtureRequest) -> Worker:
    if place.url.startswith("restate") and request.node.originalname in LEFT_OUT:
        pytest.skip(LEFT_OUT[request.node.originalname])
    return Worker(opened(place))


@pytest.fixture
def first(shared: Place) -> Worker:
    return Worker(opened(shared))


@pytest.fixture
def second(shared: Place) -> Worker:
    """Another process on the database of the first."""
    return Worker(opened(shared))
