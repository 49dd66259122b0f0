"""Lists, a page at a time: bounded by number, and by bytes, since values may be large."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from oncekey.durable.shapes import Shape, json_of
from oncekey.wire.problem import Response
from oncekey.wire.replies import ok

LARGEST_ANSWER = 8 << 20

T = TypeVar("T")


def fitting(found: Sequence[T], shape_of: Callable[[T], Shape]) -> list[msgspec.Raw]:
    """As many of them as one answer holds, and one at least."""
    shapes: list[msgspec.Raw] = []
    size = 0
    for each in found:
        shape = json_of(shape_of(each))
        size += len(shape)
        if shapes and size > LARGEST_ANSWER:
            break
        shapes.append(msgspec.Raw(shape))
    return shapes


def page_of(
    name: str,
    cursor: str,
    found: Sequence[T],
    limit: int,
    shape_of: Callable[[T], Shape],
    cursor_of: Callable[[T], Any],
    *,
    further: Any = None,
    beside: Mapping[str, Any] | None = None,
) -> Response:
    """`found` holds one more than `limit` when there is another page; `further` is where one that
    holds less goes on all the same, since not everything was looked at. `beside` is told with the
    page."""
    shapes = fitting(found[:limit], shape_of)
    shown = len(shapes)
    onward = cursor_of(found[shown - 1]) if 0 < shown < len(found) else further
    return ok(json_of({name: shapes, cursor: onward, **(beside or {})}))
