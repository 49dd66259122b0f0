"""Several pages as one. What one of them did not look at is left out of all, for the next page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

from oncekey.core.identifier import millisecond_of
from oncekey.core.looking import Looked
from oncekey.durable.shapes import time_of


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


def further_in(found: Looked[Any], id_of: Callable[[int], str]) -> dict[str, Any]:
    """For `page_of`: where a page goes on that was cut short, and back to when it looked."""
    to = found.to
    return {
        "further": None if to is None else id_of(to),
        "beside": {"looked_back_to": None if to is None else time_of(millisecond_of(to))},
    }
