"""The annotations of a function as types, also those written as text; the unknown is left out."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, get_type_hints


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Types by parameter, and of the result as `return`."""
    function = _plain(function)
    try:
        return get_type_hints(function, include_extras=True)
    except Exception:  # noqa: BLE001 - annotations are code, which may raise anything
        return _one_by_one(function)


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that has the annotations, behind partials and callable objects."""
    while isinstance(function, partial):
        function = function.func
    if inspect.isroutine(function) or inspect.isclass(function):
        return function
    called: Callable[..., Any] = type(function).__call__
    return called


def _one_by_one(function: Callable[..., Any]) -> dict[str, Any]:
    """Each for itself, so that one that cannot be found does not cost the others."""
    found: dict[str, Any] = {}
    function = inspect.unwrap(function)
    names = _names_around(function)
    for name, annotation in getattr(function, "__annotations__", {}).items():
        alone = SimpleNamespace(__annotations__={name: annotation})
        try:
            hints = get_type_hints(
                alone, getattr(function, "__globals__", {}), names, include_extras=True
            )
        except Exception:  # noqa: BLE001, S112 - as above: this one stays unknown
            continue
        found |= hints
    return found


def _names_around(function: Callable[..., Any]) -> dict[str, Any]:
    """What a function defined within another can mean: the names of that one, while it runs."""
    outer = getattr(function, "__qualname__", "").rpartition(".<locals>")[0].rpartition(".")[2]
    frame = inspect.currentframe()
    while frame is not None and not (outer and frame.f_code.co_name == outer):
        frame = frame.f_back
    return {} if frame is None else dict(frame.f_locals)
