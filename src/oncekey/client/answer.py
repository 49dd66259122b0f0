"""The answer to an intent: a response of httpx, read to its end, and where it comes from."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any, Literal, NamedTuple

import httpx

from oncekey.client.dialect import ONCEKEY, Dialect

Source = Literal["sent", "recovered", "remembered"]
Lines = tuple[tuple[str, str], ...]

_OF_THE_WIRE = frozenset({"content-encoding", "content-length", "transfer-encoding", "connection"})
# More than any problem document, and little enough to be read for nothing.
_LONGEST_PROBLEM = 65536


class Kept(NamedTuple):
    """An answer as it is stored."""

    status: int
    headers: Lines
    body: bytes


class Answer(httpx.Response):
    """`source` is `sent`, `recovered` (asked for by key), or `remembered` (no request was made)."""

    def __init__(
        self,
        kept: Kept,
        request: httpx.Request | None,
        *,
        key: str = "",
        source: Source = "sent",
        attempts: int = 0,
        dialect: Dialect = ONCEKEY,
    ) -> None:
        lines = list(kept.headers)
        super().__init__(kept.status, headers=lines, content=kept.body, request=request)
        self.kept = kept
        self.key = key
        self.source: Source = source
        self.attempts = attempts
        self._dialect = dialect

    @property
    def replayed(self) -> bool:
        """Whether the server gave a stored answer: it was done by an earlier attempt."""
        return str(self.headers.get(self._dialect.replayed, "")).strip().lower() == "true"

    @property
    def operation_id(self) -> str | None:
        found: str | None = self.headers.get(self._dialect.operation)
        return found

    @cached_property
    def problem(self) -> dict[str, Any]:
        """The problem document (RFC 9457), or the error object of Stripe's; else nothing."""
        if "json" not in self.headers.get("content-type", "") or self.status_code < 400:
            return {}
        if len(self.content) > _LONGEST_PROBLEM:
            return {}
        try:
            found = json.loads(self.content)
        except (ValueError, RecursionError):
            return {}
        found = found.get("error", found) if isinstance(found, dict) else {}
        return found if isinstance(found, dict) else {}

    @property
    def code(self) -> str:
        """The problem in a word: `request-in-progress`, `idempotency_key_in_use`, …"""
        problem = self.problem
        kind = problem.get("code") or problem.get("type")
        return kind.rstrip("/").rpartition("/")[2] if isinstance(kind, str) else ""

    @property
    def detail(self) -> str:
        """What the server says of it, in a sentence."""
        told = self.problem.get("detail") or self.problem.get("message")
        return told if isinstance(told, str) else ""


def kept_of(response: httpx.Response, body: bytes) -> Kept:
    """With its body unpacked, so that it can be read again."""
    lines = [(n, v) for n, v in response.headers.multi_items() if n.lower() not in _OF_THE_WIRE]
    return Kept(response.status_code, tuple(lines), body)
