"""JSON that means one thing only: UTF-8, an object, no member twice, no number that is none."""

from __future__ import annotations

import json
from typing import Any, NoReturn


def object_in(document: bytes) -> dict[str, Any]:
    """Raises `ValueError` for anything else."""
    try:
        value = json.loads(
            document.decode("utf-8"), object_pairs_hook=_members, parse_constant=_no_number
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 - whoever sent it, not who called
    return value


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        # Readers differ in which of the two they take.
        raise ValueError("a member is there twice")
    return members


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")
