"""What the tests of every framework share."""

from collections.abc import Iterator
from typing import Any

import pytest

import oncekey
from oncekey import Ledger


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    ledger = oncekey.open("memory://")
    yield ledger
    ledger.close()


@pytest.fixture
def runs() -> list[Any]:
    """What ran, in its order."""
    return []
