"""Which way an answer goes, and what marks it. Known from its first lines, or its second chunk."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from oncekey.core.model import Headers
from oncekey.wire.rule import Rule

Way = Literal["", "collect", "tee", "stream"]
"""`collect` it whole, store it, send it; `tee` events to the client while keeping them; `stream`
what cannot be kept, after the store knows that it will not be; empty while a chunk must tell."""

NOT_STORED = (b"idempotency-stored", b"false")
# Whoever took a claim over may still be running; its answer is worth a short wait.
WINNER_WAIT = 5.0


def way_of(headers: Iterable[tuple[bytes, bytes]], rule: Rule) -> Way:
    for name, value in headers:
        lowered = name.lower()
        if lowered == b"content-length" and value.isdigit():
            return "stream" if int(value) > rule.max_stored_body else "collect"
        if lowered == b"content-type" and value.startswith(b"text/event-stream"):
            return "tee" if rule.store_events else "stream"
    return ""


def first_marks(operation_id: str, *, stored: bool = True) -> Headers:
    """The headers that every first answer carries."""
    mark = (b"x-operation-id", operation_id.encode())
    return (mark,) if stored else (mark, NOT_STORED)
