#!/usr/bin/env python3
"""Writes python.md, beside this file: the public names, with the words of python.toml."""

import enum
import importlib
import inspect
import re
import tomllib
import types
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, ForwardRef

_PAGE = Path(__file__).with_suffix(".md")
_WORDS = tomllib.loads(_PAGE.with_suffix(".toml").read_text())
_WIDTH = 100
# As in a signature: what a caller would write, and nothing that is another thing in every process.
_LONGEST_DEFAULT = 30


def main() -> None:
    _PAGE.write_text(page())


def page() -> str:
    parts = ["# Names in Python", _WORDS["about"].strip()]
    for module in _WORDS["modules"]:
        parts += [f"## `{module['name']}`", module["about"].strip(), *_groups(module)]
    return "\n\n".join(parts) + "\n"


def public_names() -> dict[str, Any]:
    """Every name of the public modules, as in `oncekey.asgi.IdempotencyMiddleware`."""
    modules = [importlib.import_module(module["name"]) for module in _WORDS["modules"]]
    return {
        f"{module.__name__}.{name}": getattr(module, name)
        for module in modules
        for name in module.__all__
    }


def _groups(module: dict[str, Any]) -> Iterator[str]:
    found = importlib.import_module(module["name"])
    left = list(found.__all__)
    for group in module.get("groups", ()):
        yield f"### {group['title']}"
        if "about" in group:
            yield group["about"].strip()
        for name in group["names"]:
            left.remove(name)
        yield from (_rows if group.get("rows") else _blocks)(found, group["names"])
    if left and "groups" in module:
        yield "### More"
    yield from _blocks(found, left)


def _blocks(module: types.ModuleType, names: list[str]) -> Iterator[str]:
    for name in names:
        value = getattr(module, name)
        path = f"{module.__name__}.{name}"
        yield f"#### `{name}`"
        yield f"```py\n{_form(name, value)}\n```"
        yield _says(path, value)
        members = [_member(f"{path}.{each}", value, each) for each in _members(path)]
        if members:
            yield "\n".join(members)


def _rows(module: types.ModuleType, names: list[str]) -> Iterator[str]:
    rows = ["| name | what it says |", "|---|---|"]
    for name in names:
        value = getattr(module, name)
        form = " ".join(_form(name, value, width=10_000).split()).replace("|", "\\|")
        says = " ".join(_says(f"{module.__name__}.{name}", value).split())
        rows.append(f"| `{form}` | {says} |")
    yield "\n".join(rows)


def _members(path: str) -> list[str]:
    found: list[str] = _WORDS["members"].get(path, [])
    return found


def _member(path: str, owner: type, name: str) -> str:
    value = inspect.getattr_static(owner, name)
    is_called = not isinstance(value, property) and callable(getattr(owner, name))
    form = _signature(name, getattr(owner, name), width=10_000) if is_called else name
    says = " ".join(_says(path, value, twin=getattr(owner, name[1:], None)).split())
    return f"- `{form}`: {says}" if says else f"- `{form}`"


def _says(path: str, value: Any, twin: Any = None) -> str:
    """The sentence of python.toml, or the docstring, or that it has a blocking twin."""
    if path in _WORDS["says"]:
        return str(_WORDS["says"][path]).strip()
    told = inspect.getdoc(value) if value.__doc__ else None
    if told is None and twin is not None:
        return f"`{twin.__name__}` for async code."
    return (told or "").strip()


def _form(name: str, value: Any, width: int = _WIDTH) -> str:
    """How it is written by whoever uses it."""
    if isinstance(value, types.UnionType):
        return f"{name} = {' | '.join(each.__name__ for each in value.__args__)}"
    if isinstance(value, type) and issubclass(value, enum.Enum):
        return f"{name}: {', '.join(each.name for each in value)}"
    if not callable(value):
        return f"{name}: {type(value).__name__}"
    return _signature(name, value, width)


def _signature(name: str, value: Any, width: int = _WIDTH) -> str:
    found = inspect.signature(value)
    given = [each for each in found.parameters.values() if each.name != "self"]
    answers = "" if isinstance(value, type) else _annotation(found.return_annotation, " -> ")
    if any(each.name == "args" for each in given) and _is_protocol(value):
        given = []
    words = list(_parameters(given))
    name = f"async {name}" if inspect.iscoroutinefunction(value) else name
    line = f"{name}({', '.join(words)}){answers}"
    if len(line) <= width:
        return line
    return f"{name}(\n" + "".join(f"    {word},\n" for word in words) + f"){answers}"


def _is_protocol(value: Any) -> bool:
    return bool(getattr(value, "_is_protocol", False))


def _parameters(given: list[inspect.Parameter]) -> Iterator[str]:
    """With `/` and `*` where they have to stand."""
    kinds = [each.kind for each in given]
    for at, each in enumerate(given):
        if each.kind == each.KEYWORD_ONLY and not {each.KEYWORD_ONLY, each.VAR_POSITIONAL} & set(
            kinds[:at]
        ):
            yield "*"
        yield _parameter(each)
        if each.kind == each.POSITIONAL_ONLY and each.kind not in kinds[at + 1 :]:
            yield "/"


def _parameter(each: inspect.Parameter) -> str:
    stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
    annotation = _annotation(each.annotation, ": ")
    if each.default is each.empty:
        return f"{stars}{each.name}{annotation}"
    equals = " = " if annotation else "="
    return f"{stars}{each.name}{annotation}{equals}{_default(each.default)}"


def _annotation(value: Any, before: str) -> str:
    if value is inspect.Parameter.empty:
        return ""
    if isinstance(value, ForwardRef):
        value = value.__forward_arg__
    return f"{before}{value if isinstance(value, str) else getattr(value, '__name__', value)}"


def _default(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, frozenset):
        return f"{{{', '.join(map(repr, sorted(value)))}}}" if value else "frozenset()"
    if is_dataclass(value) and value == type(value)():
        return f"{type(value).__name__}()"
    told = repr(value)
    is_plain = not re.search(r" at 0x|<", told) and len(told) <= _LONGEST_DEFAULT
    return told if is_plain else "..."


if __name__ == "__main__":
    main()
