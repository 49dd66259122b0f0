"""Processes that run durable work, on every kind of store."""

import pytest

from tests.fixtures.quiet import opened
from tests.fixtures.stores import Place
from tests.fixtures.work import Worker


@pytest.fixture
def worker(place: Place) -> Worker:
    return Worker(opened(place))


@pytest.fixture
def first(shared: Place) -> Worker:
    return Worker(opened(shared))


@pytest.fixture
def second(shared: Place) -> Worker:
    """Another process on the database of the first."""
    return Worker(opened(shared))
