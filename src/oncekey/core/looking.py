"""Looking for what is rare among very much: a page says how far was looked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

LOOK = 100_000
"""How many a page of a list looks at, for somebody who waits for it."""


class Looked(list[T]):
    """A page, newest first. What is older than the number `to` was not looked at, though it is not
    full; None for a page that is full, or the last."""

    def __init__(self, found: Iterable[T] = (), to: int | None = None) -> None:
        super().__init__(found)
        self.to = to
