"""How a setting is declared: a field with its kind, and a default."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from oncekey.config.kinds import Kind, Named, Section, Sections

LARGEST = 1 << 40


def setting(kind: Kind | Section | Sections, default: Any = None) -> Any:
    return field(default=default, metadata={"kind": kind})


def section(kind: type[Any]) -> Any:
    """A table that is always there: each of its settings has a default."""
    return field(default_factory=kind, metadata={"kind": Section(kind)})


def named(kind: Named) -> Any:
    return field(default_factory=dict, metadata={"kind": kind})


def hidden(kind: Kind, default: Any = None) -> Any:
    """A secret, or what may have one in it: no representation of the settings shows it."""
    return field(default=default, repr=False, metadata={"kind": kind})
