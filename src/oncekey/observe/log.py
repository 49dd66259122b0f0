"""The log: lines for people or for machines, written by a thread of their own.

Whatever a caller chose stays inside its line: JSON escapes it, and so does the text form.
"""

from __future__ import annotations

import atexit
import copy
import logging
import os
import sys
from collections.abc import MutableMapping
from contextlib import suppress
from logging.handlers import QueueHandler, QueueListener
from queue import Full, Queue
from typing import Any, Literal, TextIO

import structlog

Format = Literal["text", "json"]

_LOGGERS = ("oncekey", "uvicorn")
# More than this waits only while nobody takes what is written.
_MOST_WAITING = 10_000
# Seconds for what is still to be written when the process ends.
_LAST_WORDS = 2.0
_QUOTING = frozenset('"\\')
_FIRST = ("timestamp", "level", "logger", "event")
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:/@+*{}")


def write_log(
    form: Format | None = None, level: str = "info", stream: TextIO | None = None
) -> Writing:
    """Have the lines of this process written from now on. `form` None: by whether a terminal is at
    the other end."""
    out = stream or sys.stderr
    form = form or ("text" if out.isatty() else "json")
    return Writing(formatter_of(form), level.upper(), out)


class Writing:
    """Until it is closed. What was there before is put back then."""

    def __init__(self, formatter: logging.Formatter, level: str, stream: TextIO) -> None:
        self._before = [_state_of(name) for name in _LOGGERS]
        handler = _Writer(_direct(stream))
        handler.setFormatter(formatter)
        waiting: Queue[Any] = Queue(_MOST_WAITING)
        self._listener = _Listening(waiting, handler)
        self._listener.start()
        self._open = True
        putting = _Putting(waiting)
        for name in _LOGGERS:
            logger = logging.getLogger(name)
            logger.handlers = [putting]
            logger.propagate = False
            logger.setLevel(max(logging.WARNING, getattr(logging, level)))
        logging.getLogger("oncekey").setLevel(level)
        atexit.register(self.close)

    def close(self) -> None:
        """Once everything is written, or nobody takes it."""
        if not self._open:
            return
        self._open = False
        atexit.unregister(self.close)
        for name, handlers, propagate, level in self._before:
            logger = logging.getLogger(name)
            logger.handlers, logger.propagate = handlers, propagate
            logger.setLevel(level)
        self._listener.stop_within(_LAST_WORDS)


class _Listening(QueueListener):
    queue: Queue[Any]

    def stop_within(self, seconds: float) -> None:
        with suppress(Full):
            self.queue.put(None, timeout=seconds)
            # It ends when it has come so far; its thread keeps no process alive.
            assert self._thread is not None
            self._thread.join(seconds)


class _Writer(logging.StreamHandler[Any]):
    """Without a lock: one thread writes, and whoever ends the process must not wait for it."""

    def createLock(self) -> None:  # noqa: N802 - logging's own name
        self.lock = None


class _Descriptor:
    """Past the buffers of Python, which are locked while one of them is written: a pipe that nobody
    reads would keep the process from ending."""

    def __init__(self, number: int) -> None:
        self._number = number

    def write(self, text: str) -> None:
        left = text.encode("utf-8", "backslashreplace")
        while left:
            left = left[os.write(self._number, left) :]

    def flush(self) -> None:
        """Nothing is held back."""


def _direct(stream: TextIO) -> Any:
    try:
        return _Descriptor(stream.fileno())
    except (AttributeError, OSError):
        return stream


class _Putting(QueueHandler):
    """Hands lines to the thread that writes them. Never waits: what it does not take is counted."""

    queue: Queue[Any]

    def __init__(self, waiting: Queue[Any]) -> None:
        super().__init__(waiting)
        self._lost = 0

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        # What it is about may change before it is written.
        ready = copy.copy(record)
        ready.msg, ready.args = record.getMessage(), None
        return ready

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            if self._lost:
                lost = self._lost
                self.queue.put_nowait(_told_of(lost))
                self._lost -= lost
            self.queue.put_nowait(record)
        except Full:
            self._lost += 1


def _told_of(lost: int) -> logging.LogRecord:
    text = f"{lost} lines were not written: nobody took them"
    return logging.LogRecord("oncekey", logging.WARNING, "", 0, text, None, None)


def formatter_of(form: Format) -> logging.Formatter:
    gathering: list[Any] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    rendering = structlog.processors.JSONRenderer() if form == "json" else _as_text
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=gathering,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            rendering,
        ],
    )


def _as_text(_: Any, __: str, fields: MutableMapping[str, Any]) -> str:
    """`2026-… warning  what happened  name=value`, and below it, indented, a trace."""
    trace = str(fields.pop("exception", ""))
    stamp, level, _logger, event = (str(fields.pop(name, "")) for name in _FIRST)
    pairs = [f"{name}={_value(value)}" for name, value in fields.items() if value != ""]
    line = "  ".join(
        [f"{stamp} {level:<7} {escaped(event)}", *([" ".join(pairs)] if pairs else [])]
    )
    return "\n".join([line, *(f"    {escaped(each)}" for each in trace.splitlines())])


def _value(value: Any) -> str:
    shown = str(value)
    return shown if _PLAIN.issuperset(shown) else f'"{escaped(shown)}"'


def escaped(text: str) -> str:
    """Nothing in it ends a line, moves a cursor or closes a quote."""
    if text.isprintable() and _QUOTING.isdisjoint(text):
        return text
    return "".join(map(_escaped, text))


def _escaped(character: str) -> str:
    if character in _QUOTING:
        return "\\" + character
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")


def _state_of(name: str) -> tuple[str, list[logging.Handler], bool, int]:
    logger = logging.getLogger(name)
    return name, logger.handlers, logger.propagate, logger.level
