"""A shop whose pages use the client for browsers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.served import Serve
from tests.fixtures.web_shop import WebShop, web_shop_of


@pytest.fixture
def web_shop(serve: Serve, tmp_path: Path) -> Iterator[WebShop]:
    with web_shop_of(serve, tmp_path) as shop:
        yield shop
