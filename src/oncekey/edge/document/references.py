"""Ways through an OpenAPI document that anybody may have written: to what a `$ref` stands for, and
to members that must be objects or lists."""

from __future__ import annotations

from typing import Any

from oncekey.core.errors import InvalidInput

# More steps than these are a circle.
_LONGEST_WAY = 16


def is_elsewhere(part: Any) -> bool:
    """Whether it stands in another document, which nobody has here."""
    return isinstance(part, dict) and not str(part.get("$ref", "#")).startswith("#")


def resolved(document: Any, part: Any) -> dict[str, Any]:
    """What a part of the document says, wherever in it that stands. Raises `InvalidInput`."""
    ref = ""
    for _ in range(_LONGEST_WAY):
        if not isinstance(part, dict):
            break
        if "$ref" not in part:
            return part
        ref = str(part["$ref"])
        part = _at(document, ref)
    raise InvalidInput(f"the document refers to {ref[:200]!r}, which is no object in it")


def object_in(part: dict[str, Any], name: str, *, make: bool = True) -> dict[str, Any]:
    """The member of that name, which is made when there is none. Raises `InvalidInput`."""
    found = part.get(name)
    if found is None:
        found = {}
        if make:
            part[name] = found
    if not isinstance(found, dict):
        raise InvalidInput(f"{name!r} must be an object everywhere in the document")
    return found


def list_in(part: dict[str, Any], name: str) -> list[Any]:
    """The member of that name; empty when there is none. Raises `InvalidInput`."""
    found = part.get(name)
    if not isinstance(found, list | None):
        raise InvalidInput(f"{name!r} must be a list everywhere in the document")
    return found or []


def _at(document: Any, ref: str) -> Any:
    for word in ref.removeprefix("#").split("/")[1:]:
        name = word.replace("~1", "/").replace("~0", "~")
        document = document.get(name) if isinstance(document, dict) else None
    return document
