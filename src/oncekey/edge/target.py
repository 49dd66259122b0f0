"""The path a request asks for, where everybody on its way reads the same one.

A gateway in front and the service behind may each resolve dots, merge slashes, cut at a backslash
or decode twice. What one of them could read as another path is no path here.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import unquote_to_bytes

MAX_TARGET = 16_384
# Anybody can make up longer ones, as many as he likes.
_LONGEST_REMEMBERED = 512

# Segments that are not empty, of visible ASCII without what nobody sends as it is; then a query.
_TARGET = re.compile(rb"((?:/[!$-.0-;=@A-\[\]^_a-z|~]+)*/?)(?:\?[!\"$-~]*)?").fullmatch
_BROKEN_OR_SLASH = re.compile(rb"%(?![0-9A-Fa-f]{2})|%2[Ff]").search
# In what was decoded once: controls, backslashes, dots alone, and what could be decoded again.
_MISREAD = re.compile(r"[\x00-\x1f\x7f-\x9f\\]|/\.{1,2}(?:[/;]|\Z)|%[0-9A-Fa-f]{2}").search


def path_of(target: bytes) -> str | None:
    """The path of a request target, decoded; None for what must be refused.

    Only the form with a path and perhaps a query is one: no host, no fragment.
    """
    return _remembered(target) if len(target) <= _LONGEST_REMEMBERED else _read(target)


def _read(target: bytes) -> str | None:
    if len(target) > MAX_TARGET or not target.startswith(b"/"):
        return None
    found = _TARGET(target)
    if found is None:
        return None
    raw: bytes = found[1]
    return _decoded(raw) if b"%" in raw or b"/." in raw else raw.decode("ascii")


_remembered = lru_cache(maxsize=1024)(_read)


def _decoded(raw: bytes) -> str | None:
    if _BROKEN_OR_SLASH(raw):
        return None
    try:
        path = unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        return None
    return None if _MISREAD(path) else path
