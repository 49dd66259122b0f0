"""Receivers of webhooks on every kind of store, with the embedded engine behind them."""

from collections.abc import Iterator

import pytest

import oncekey
from oncekey import Ledger
from tests.fixtures.stores import Place


@pytest.fixture
def ledger(place: Place) -> Iterator[Ledger]:
    opened = oncekey.open(place.url)
    yield opened
    opened.close(grace=0)
