"""The grammar of a client's key and of its header. Refusals name the rule that is broken."""

from __future__ import annotations

import re

from oncekey.core.errors import KeyInvalid

MAX_KEY_LENGTH = 255
MAX_NAME_LENGTH = 512

_ALLOWED = r"A-Za-z0-9._~\-"
_KEY = re.compile(rf"[{_ALLOWED}]{{1,{MAX_KEY_LENGTH}}}")
# The keys our own schedules send: no client can make one by accident.
_TICK = re.compile(r"sched:[A-Za-z0-9][A-Za-z0-9._-]{0,63}:[0-9]{1,15}")
_FOREIGN = re.compile(rf"[^{_ALLOWED}]")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_RESERVED = "t-"


def parse_key(value: str) -> str:
    """The key in one header value, plain (`k`) or as a Structured Field String (`"k"`)."""
    text = value.strip(" \t")
    if text.startswith('"'):
        text = _unquote(text)
    return check_key(text)


def check_key(text: str) -> str:
    """`text` if it is a valid client key; else the error that names the broken rule."""
    if _KEY.fullmatch(text) and not text.startswith(_RESERVED):
        return text
    if _TICK.fullmatch(text):
        return text
    raise KeyInvalid(*_broken_rule(text))


def check_name(text: str) -> str:
    """A key chosen by code, not by a client: any printable text of bounded length."""
    if not text:
        raise KeyInvalid("the key is empty", "empty")
    if len(text) > MAX_NAME_LENGTH:
        raise KeyInvalid(f"the key is longer than {MAX_NAME_LENGTH} characters", "length")
    if _UNPRINTABLE.search(text):
        raise KeyInvalid("the key holds a control character")
    return text


def _unquote(text: str) -> str:
    # The grammar has no character a Structured Field String would escape, so the only
    # valid quoted form is quote, key, quote; a parser would accept nothing more.
    if len(text) < 2 or not text.endswith('"'):
        if text.count('"') > 1:
            told = "a quoted key must end with its quote; parameters are not allowed"
            raise KeyInvalid(told, "quotes")
        raise KeyInvalid("the quoted key has no closing quote", "quotes")
    return text[1:-1]


def _broken_rule(text: str) -> tuple[str, str]:
    """What to tell, and the rule in a word."""
    if not text:
        return "the key is empty", "empty"
    if len(text) > MAX_KEY_LENGTH:
        return f"the key is longer than {MAX_KEY_LENGTH} characters", "length"
    if text.startswith(_RESERVED):
        return "the key starts with the reserved prefix 't-'", "prefix"
    found = _FOREIGN.search(text)
    shown = ascii(found.group()) if found else ascii(text)
    return f"the key holds {shown}; allowed are A-Z a-z 0-9 . _ ~ -", "charset"
