"""A journal as the rows of a timeline: where each step lies in a whole life, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import ceil, floor, log2
from typing import Any, Literal, NamedTuple

from oncekey.console import exact
from oncekey.console.plots import Bar, bar_of

Shape = Mapping[str, Any]
Tone = Literal["done", "failed", "waits", "copied"]

# Steps in which nothing is done but to wait.
_WAITS = frozenset({"promise", "sleep", "event", "call"})
# A life that goes on is drawn as a little longer than it is: it then looks the same for a while,
# and those who watch are not sent it anew all the time.
_TICKS = 32


class Failure(NamedTuple):
    code: str
    message: str
    data: Any


class Row(NamedTuple):
    """A finished step, or something that is waited for now."""

    shape: Shape
    tone: Tone
    bar: Bar | None
    """None for what was done before this life began."""
    failure: Failure | None = None


class Timeline(NamedTuple):
    steps: Sequence[Row]
    waits: Sequence[Row]


def timeline_of(workflow: Shape, journal: Shape, now: datetime) -> Timeline:
    """Of an execution and a page of its journal, as the API shows them."""
    first = _at(workflow["created_at"])
    last = _drawn_until(first, workflow["completed_at"], now)
    taken_over = (workflow["forked_at"] or 1) - 1
    steps = [_row_of(each, first, last, taken_over) for each in journal["steps"]]
    waits = [_wait_of(each, first, last) for each in journal["waits"]]
    return Timeline(steps, waits)


def failure_of(error: Any) -> Failure:
    """What went wrong, in words: of a failure, or of whatever somebody rejected something with."""
    if isinstance(error, str):
        try:
            error = exact.read(error)
        except (ValueError, RecursionError):
            return Failure("", error, None)
    if isinstance(error, dict) and isinstance(error.get("message"), str):
        return Failure(str(error.get("code", "")), error["message"], error.get("data"))
    text = error if isinstance(error, str) else exact.written(error, None)
    return Failure("", text, None)


def age_of(since: str | None, now: datetime | None = None) -> str:
    """How long ago, so roughly that it rarely changes."""
    if since is None:
        return "–"
    passed = ((now or datetime.now(UTC)) - datetime.fromisoformat(since)).total_seconds()
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if passed >= 2 * size:
            return f"{passed // size:.0f} {unit}"
    return "1 min" if passed >= 60 else "under 1 min"


def _row_of(step: Shape, first: float, last: float, taken_over: int) -> Row:
    failure = failure_of(step["value"]) if step["failed"] else None
    if step["from_step"] <= taken_over:
        return Row(step, "copied", None, failure)
    waited: Tone = "waits" if step["kind"] in _WAITS else "done"
    bar = bar_of(_at(step["started_at"]), _at(step["at"]), first, last)
    return Row(step, "failed" if failure else waited, bar, failure)


def _wait_of(wait: Shape, first: float, last: float) -> Row:
    failure = None if wait["trouble"] is None else failure_of(wait["trouble"])
    return Row(wait, "waits", bar_of(_at(wait["since"]), last, first, last), failure)


def _drawn_until(first: float, completed_at: str | None, now: datetime) -> float:
    if completed_at is not None:
        return _at(completed_at)
    passed = max(now.timestamp() * 1000 - first, 1.0)
    tick = 2.0 ** floor(log2(passed / _TICKS))
    return first + ceil(passed / tick) * tick


def _at(text: str) -> float:
    """Milliseconds since 1970."""
    return datetime.fromisoformat(text).timestamp() * 1000
