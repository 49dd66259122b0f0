"""No example may hang: what all of them may take together grows with their number."""

import pytest

from tests.fixtures.fuzzing import TIMES

SECONDS = 120


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent.name == "fuzz":
            item.add_marker(pytest.mark.timeout(SECONDS * TIMES))
