"""A page of a list: what fits its filters, the one of an id, or why nothing can be looked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from oncekey.console.visit import Refused, Visit, part


class Listed(NamedTuple):
    rows: Sequence[Mapping[str, Any]]
    next_before: str | None = None
    looked_back_to: str | None = None
    """Where the page ended early, since little fits."""
    problem: Refused | None = None
    """With a filter; what was written into it stays there."""

    @property
    def status(self) -> int:
        return 200 if self.problem is None else self.problem.status

    @property
    def looks_on(self) -> bool:
        """Whether nothing was found so far: then the page goes on by itself."""
        return not self.rows and bool(self.next_before and self.looked_back_to)


async def listed(visit: Visit, noun: str, ask: Callable[[Visit], Awaitable[Any]]) -> Listed:
    """`ask` is for many, and answers with a member `noun`; with an `id` there is one at most."""
    try:
        wanted = visit.query.get("id", "").strip()
        if wanted:
            found = await visit.get(f"{noun}/{part(wanted)}")
            # With a slash in it, it may have been the path of something else.
            return Listed([found] if found.get("id") == wanted else [])
        page = await ask(visit)
    except Refused as refused:
        if refused.status == 404:
            return Listed([])
        if refused.status >= 500:
            raise
        return Listed([], problem=refused)
    return Listed(page[noun], page["next_before"], page.get("looked_back_to"))
