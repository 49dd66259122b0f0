"""A request as the edge sees it, before anything of it is believed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import NamedTuple

from oncekey.core.model import Headers

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

    @property
    def target(self) -> bytes:
        return self.raw_path + b"?" + self.query if self.query else self.raw_path


class Answer(NamedTuple):
    """What goes back: whole, or a beginning that `rest` goes on from."""

    status: int
    headers: Headers | Pairs
    body: bytes
    rest: AsyncGenerator[bytes, None] | None = None
