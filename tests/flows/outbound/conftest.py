"""A ledger in memory."""

from collections.abc import Iterator

import pytest

import oncekey
from oncekey import Ledger


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    made = oncekey.open("memory://")
    yield made
    made.close()
