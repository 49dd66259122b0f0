"""The words of the console: what is said after an action, and numbers as people read them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from oncekey.core.scope import SENTINELS

SAID = {
    "cancelled": "It is cancelled, and ends for good.",
    "forked": "This is the fork: it begins with what was done before the step.",
    "purged": "The key is forgotten: the next request or delivery with it runs.",
    "published": "The event is published, and somebody was waiting for it.",
    "published-to-nobody": (
        "The event is published. No wait fitted it. A wait whose condition could not be evaluated "
        "says so on the page of its workflow."
    ),
    "rejected": "The promise is rejected: whoever waited for it gets the reason as an error.",
    "resolved": "The promise is resolved: whoever waited for it goes on.",
    "resumed": "It goes on where it stopped.",
    "retention-set": "It is set, for outcomes that are stored from now on.",
    "revoked": "The API key is revoked: whoever calls with it is refused.",
    "schedule-paused": "The schedule is paused: no tick is begun until it is resumed.",
    "schedule-resumed": "The schedule goes on with its next tick.",
    "settled-before": "Somebody was earlier: it was settled already, and has stayed as it was.",
    "signed-out": "You have signed out.",
    "webhook-changed": "The webhook is changed, for deliveries that come from now on.",
    "webhook-deleted": "The webhook is deleted: its deliveries are refused.",
}
"""What is said on the page an action leads to, by its word."""

AGAIN = "This was asked before with the same form: it was done then, and once."

_STATES = {
    "accepted": "good",
    "active": "good",
    "alive": "good",
    "awaited": "warn",
    "cancelled": "off",
    "expired": "off",
    "failed": "bad",
    "good": "good",
    "in_progress": "busy",
    "in-flight": "busy",
    "lapsed": "bad",
    "overdue": "warn",
    "paused": "warn",
    "pending": "busy",
    "published": "good",
    "ready": "busy",
    "refused": "bad",
    "rejected": "bad",
    "released": "warn",
    "repeated-body": "warn",
    "replayed": "good",
    "resolved": "good",
    "revoked": "off",
    "running": "busy",
    "succeeded": "good",
    "timed_out": "warn",
    "uncertain": "bad",
    "waiting": "busy",
}


def tone_of(state: str | None) -> str:
    """How a state is coloured; its word says it as well."""
    return _STATES.get(state or "", "off")


def label_of(state: str | None) -> str:
    return (state or "–").replace("_", " ")


def number_of(value: float) -> str:
    """Three digits that matter, and no more."""
    text = f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def size_of(count: int | None) -> str:
    if count is None:
        return "–"
    if count < 1 << 10:
        return f"{count} B"
    return f"{count / 1024:.1f} KiB" if count < 1 << 20 else f"{count / (1 << 20):.1f} MiB"


def span_of(milliseconds: float | None) -> str:
    """A duration as people say it."""
    if milliseconds is None:
        return "–"
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


_TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")


def clock(text: str | None) -> str:
    """A time of the API as people read it, in UTC."""
    if not text:
        return "–"
    moment = datetime.fromisoformat(text).astimezone(UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}"


def spelled(text: str) -> str:
    """A text of the API, with its times as people read them."""
    return _TIME.sub(lambda found: _clock_if_any(found[0]), text)


def _clock_if_any(text: str) -> str:
    """What a caller wrote may only look like a time."""
    try:
        return clock(text)
    except (ValueError, OverflowError):
        return text


def sentence_of(text: str) -> str:
    # An id stays as it is: it is looked for as it is written.
    begins = text[:1] if "_" in text.partition(" ")[0] else text[:1].upper()
    return begins + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def narrows(query: Mapping[str, str]) -> bool:
    """Whether a list is asked for something in particular."""
    return any(value for name, value in query.items() if name not in {"said", "again"})


def between(start: str | None, end: str | None) -> float | None:
    """Milliseconds from one time of the API to another."""
    if not start or not end:
        return None
    passed = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    return passed.total_seconds() * 1000


def project_of(name: str) -> str:
    """A dash where there is none."""
    return "–" if name in SENTINELS else name


def origin_of(word: str) -> str:
    """Who said how long outcomes of a class are kept."""
    said = {"store": "set here or by command", "configuration": "the configuration"}
    return said.get(word, "built in")


def details_of(details: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """What an entry of the audit feed tells, and the key of the request behind all of it."""
    told = [(name, value) for name, value in details.items() if value not in (None, "")]
    return sorted(told, key=lambda each: each[0] == "idempotency_key")


def missed_of(word: str) -> str:
    """What becomes of ticks that were missed, by the word of a schedule."""
    said = {"skip": "left out", "last": "the last one is made up for", "all": "all made up for"}
    return said.get(word, word)


def repeats_of(word: str) -> str:
    return {"refuse": "not done again", "allow": "done again"}.get(word, word)


def text_of(value: Any) -> str:
    return "–" if value in {None, ""} else str(value)
