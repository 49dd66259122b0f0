"""Several pages as one. What one of them did not look at is left out of all, for the next page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from oncekey.core.looking import Looked


class Numbered(Protocol):
    @property
    def id(self) -> int: ...


T = TypeVar("T", bound=Numbered)


def merged(pages: Iterable[Looked[T]]) -> Looked[T]:
    """Newest first."""
    pages = list(pages)
    to = max((page.to for page in pages if page.to is not None), default=None)
    found = sorted((each for page in pages for each in page), key=lambda each: -each.id)
    return Looked((each for each in found if to is None or each.id >= to), to)
