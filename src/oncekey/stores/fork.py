"""Forked children: a store that was opened before a fork starts anew in the child."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def reset_after_fork(store: T, reset: Callable[[T], None]) -> None:
    """Call `reset(store)` in every child of this process, while the store is in use."""
    reference: weakref.ref[Any] = weakref.ref(store)

    def in_child() -> None:
        opened = reference()
        if opened is not None:
            reset(opened)

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=in_child)
