"""Effects: each leaves a line with a mark of its own, outside of what is under attack."""

import os
import secrets
from pathlib import Path

from tests.chaos.history import Effect, Writer, now

_SERVER = os.environ.get("CHAOS_SERVER", "")
_writer: list[Writer] = []


def new_mark() -> str:
    return secrets.token_hex(6)


def effect(job: int, place: str, who: str, key: str, body: str = "", saw: str = "") -> str:
    """Do it; answers its mark."""
    mark = new_mark()
    add(Effect(now(), job, place, who, key, body, mark, _SERVER, saw))
    return mark


def add(event: Effect) -> None:
    if not _writer:
        _writer.append(Writer(effects_file()))
    _writer[0].add(event)


def effects_file() -> Path:
    return Path(os.environ["CHAOS_EFFECTS"])
