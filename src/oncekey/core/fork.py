"""Forks: what was opened before one is put in order around it, in the parent and in the child."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def around_forks(
    opened: T,
    *,
    in_child: Callable[[T], None],
    before: Callable[[T], None] | None = None,
    in_parent: Callable[[T], None] | None = None,
) -> None:
    """Call these with `opened` around every fork of this process, as long as somebody uses it."""
    reference: weakref.ref[Any] = weakref.ref(opened)

    def with_it(function: Callable[[T], None]) -> Callable[[], None]:
        def call() -> None:
            found = reference()
            if found is not None:
                function(found)

        return call

    if hasattr(os, "register_at_fork"):
        given = {"before": before, "after_in_parent": in_parent, "after_in_child": in_child}
        os.register_at_fork(**{name: with_it(each) for name, each in given.items() if each})
