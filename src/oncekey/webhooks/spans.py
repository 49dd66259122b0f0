"""The spans of a delivery, where it is traced: verify; then claim, what follows, and settle."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from oncekey.core.events import Seen


def part(span: Any, name: str) -> AbstractContextManager[None]:
    """A step of the walk; `span` is None where nobody traces."""
    return nullcontext() if span is None else span.part(name)


def span_of(seen: Seen | None) -> Any:
    return None if seen is None else seen.span


def span_of_item(seen: Seen | None) -> Any:
    """Items are settled side by side, so each has its own."""
    span = span_of(seen)
    return None if span is None else span.beside()
