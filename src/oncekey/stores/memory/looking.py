"""The oracle of pages: what fits among the newest, and how far was looked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from oncekey.core.looking import Looked


class Paged(Protocol):
    @property
    def before(self) -> int | None: ...

    @property
    def limit(self) -> int: ...

    @property
    def look(self) -> int | None: ...


T = TypeVar("T", bound=Any)


def looked(newest: Sequence[T], asked: Paged, fits: Callable[[T], bool]) -> Looked[T]:
    """`newest` is everything, newest first."""
    below = [each for each in newest if asked.before is None or each.id < asked.before]
    seen = below if asked.look is None else below[: asked.look]
    found = [each for each in seen if fits(each)]
    is_all = len(found) >= asked.limit or len(seen) == len(below)
    return Looked(found[: asked.limit], None if is_all else seen[-1].id if seen else asked.before)
