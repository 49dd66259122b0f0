"""Where in a TOML text a key stands. Reads what `tomllib` has accepted, so it may be simple."""

from __future__ import annotations

import re
from collections.abc import Iterator

Path = tuple[str | int, ...]

_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"""'
    r"|'''.*?'''"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*"
    r"|[\[\]{}\n]",
    re.DOTALL,
)
_PART = r"""(?:[A-Za-z0-9_-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*')"""
_DOTTED = rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*"
_HEADER = re.compile(rf"[ \t]*(\[\[?)[ \t]*({_DOTTED})[ \t]*\]")
_KEY = re.compile(rf"[ \t]*({_DOTTED})[ \t]*=")


def line_of(text: str, path: Path) -> int:
    """The line of the key, or of the nearest thing around it that has one."""
    known = _positions(text)
    while path and path not in known:
        path = path[:-1]
    return known.get(path, 1)


def _positions(text: str) -> dict[Path, int]:
    found: dict[Path, int] = {}
    arrays: dict[Path, int] = {}
    table: Path = ()
    for start in _statements(text):
        line = text.count("\n", 0, start) + 1
        if header := _HEADER.match(text, start):
            table = _table_of(header, arrays)
            for length in range(len(table)):
                found.setdefault(table[: length + 1], line)
        elif key := _KEY.match(text, start):
            path = table
            for part in _parts(key[1]):
                path = (*path, part)
                found.setdefault(path, line)
    return found


def _table_of(header: re.Match[str], arrays: dict[Path, int]) -> Path:
    path: Path = ()
    *outer, last = _parts(header[2])
    for part in outer:
        path = (*path, part)
        if path in arrays:
            path = (*path, arrays[path])
    path = (*path, last)
    if header[1] == "[[":
        arrays[path] = arrays.get(path, -1) + 1
    return (*path, arrays[path]) if path in arrays else path


def _parts(dotted: str) -> list[str]:
    return [part.strip("\"'") for part in re.findall(_PART, dotted)]


def _statements(text: str) -> Iterator[int]:
    """Where each header or key begins: at the start of a line that no value reaches into."""
    depth = 0
    yield 0
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "[" | "{":
                depth += 1
            case "]" | "}":
                depth -= 1
            case "\n" if depth == 0:
                yield token.end()
