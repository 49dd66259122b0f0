"""Values that SQL can look into: columns of text stand in front of what is kept."""

from __future__ import annotations

import msgspec

from oncekey.stores.restate.link import text

# JSON never has it as it is, so that no column and no value does.
_SEPARATOR = b"\x1f"
_encode = msgspec.json.Encoder().encode


def joined(*columns: str) -> bytes:
    """To be followed by what is kept, as JSON."""
    return b"".join(_plain(each) + _SEPARATOR for each in columns)


def last(data: bytes) -> bytes:
    """What is kept behind the columns."""
    return data[data.rindex(_SEPARATOR) + 1 :]


def column(number: int) -> str:
    """SQL for one of them; the first has the number 1."""
    return f"split_part(value_utf8, chr(31), {number})"


def piece(start: int, length: int) -> str:
    """SQL for a part of the first column, which begins at 1."""
    return f"substr(value_utf8, {start}, {length})"


def is_same(number: int, value: str) -> str:
    return f"{column(number)} = {text(_plain(value).decode())}"


def begins(number: int, value: str) -> str:
    return f"starts_with({column(number)}, {text(_plain(value).decode())})"


def contains(value: str) -> str:
    """What is kept has this text somewhere, whole."""
    return f"strpos(value_utf8, {text(_encode(value).decode())}) > 0"


def _plain(value: str) -> bytes:
    """As JSON escapes it. What begins with another text does so in this form, too."""
    return _encode(value)[1:-1]
