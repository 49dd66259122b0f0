"""A request as the edge sees it, before anything of it is believed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

from oncekey.core.model import Headers

if TYPE_CHECKING:
    from oncekey.edge.serving.repeats import Repeat

Pairs = list[tuple[bytes, bytes]]


class Asked(NamedTuple):
    method: str
    path: str
    """Decoded; what routes are matched with."""
    raw_path: bytes
    query: bytes
    headers: Pairs
    """Names in lower case, lines in their order."""
    peer: str
    """The address at the other end of the connection; empty when it has none."""
    scheme: str
    again: tuple[Repeat, list[bytes]] | None = None
    """What it repeats, and what is new in it, when it came right after another like it."""

    @property
    def target(self) -> bytes:
        return self.raw_path + b"?" + self.query if self.query else self.raw_path


class Following(Protocol):
    """What follows the beginning of an answer. Whoever does not read it to its end closes it, also
    when nothing of it was read: a connection is held for it."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def __anext__(self) -> bytes: ...

    async def aclose(self) -> None: ...


class Answer(NamedTuple):
    """What goes back: whole, or a beginning that `rest` goes on from."""

    status: int
    headers: Headers | Pairs
    body: bytes
    rest: Following | None = None
