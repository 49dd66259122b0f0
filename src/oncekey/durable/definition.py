"""A workflow or a task as an app knows it: its function, and the rules it runs under."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from oncekey.core.errors import ConfigurationError
from oncekey.core.execution import Sort
from oncekey.durable.retry import Retry
from oncekey.durable.signature import Signature, signature_of

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """`timeout` and `keep` are in seconds; `concurrency` is how many may run in one process."""

    sort: Sort
    name: str
    function: Callable[..., Any]
    signature: Signature
    retry: Retry
    timeout: float | None = None
    keep: float | None = None
    concurrency: int | None = None

    @property
    def place(self) -> tuple[Sort, str]:
        return self.sort, self.name


def define(
    sort: Sort,
    function: Callable[..., Any],
    name: str | None,
    *,
    retry: Retry,
    timeout: float | None,
    keep: float | None,
    concurrency: int | None,
) -> Definition:
    """Raises `ConfigurationError` for what cannot be run."""
    name = name or function.__name__
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"{name!r} is no name for a {sort.name.lower()}: letters, digits, '_', '-' and '.', "
            "at most 128, not a digit first"
        )
    if concurrency is not None and concurrency < 1:
        raise ConfigurationError(f"{name}: a concurrency of {concurrency} would never run it")
    if sort is Sort.WORKFLOW and not inspect.iscoroutinefunction(function):
        raise ConfigurationError(f"the workflow {name} must be an async function")
    signature = signature_of(function, skip=1 if sort is Sort.WORKFLOW else 0)
    return Definition(sort, name, function, signature, retry, timeout, keep, concurrency)
