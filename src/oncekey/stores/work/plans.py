"""What durable work asks, as steps of named SQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oncekey.stores.requests import Setting, Steps

PLANS: dict[type, Callable[[Any, Setting], Steps]] = {}
READS: frozenset[type] = frozenset()
