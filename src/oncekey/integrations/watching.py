"""Requests to an application, for those who watch: begun and ended around its middleware."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from oncekey.core.events import Observer, Seen, Watch
from oncekey.core.model import Record
from oncekey.core.scope import namespace_of
from oncekey.wire.headers import Lines, trouble_in
from oncekey.wire.problem import Response
from oncekey.wire.rule import Rule

SEEN = "oncekey.seen"
"""Where a request carries it: one middleware may stand behind another."""

_POLICIES = {
    "required": "REQUIRED_A",
    "optional": "ACCEPTED",
    "prohibited": "PROHIBITED",
    "ignored": "HANDLER_INTERNAL_C",
}
_OK, _BROKEN = 200, 500

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Request:
    """One request under a rule. `first` is False where another middleware has begun it."""

    __slots__ = ("_observe", "_watch", "first", "place", "seen", "status")

    def __init__(
        self,
        watch: Watch | None,
        observe: Observer,
        carried: MutableMapping[str, Any],
        place: str,
        rule: Rule,
    ) -> None:
        self._watch = watch
        self._observe = observe
        self.place = place
        self.status = 0
        self.seen: Seen | None = carried.get(SEEN)
        self.first = self.seen is None
        if watch is None:
            return
        if self.seen is None:
            self.seen = carried[SEEN] = watch.begin(place)
            if watch.tracing is not None:
                watch.tracing.begin(self.seen, lines_in(carried))
        self.seen.endpoint, self.seen.policy = place, _POLICIES[rule.key]

    def has(self, key: str | Response | None, lines: Lines, rule: Rule, *, known: bool) -> None:
        """What was found of a key. `known`: whoever has no identity is of the default tenant."""
        seen = self.seen
        if isinstance(key, str):
            if seen is not None:
                seen.way, seen.case, seen.source = "new", "A", "header"
            return
        if seen is not None:
            seen.way = "passed" if key is None else "refused"
        if (key is not None or rule.key == "optional") and not (seen is not None and seen.told):
            event, detail = trouble_in(lines.keys, rule)
            self._observe(event, self.place, namespace_of() if known else "", detail)
            if seen is not None:
                seen.told = True

    def is_of(self, namespace: str, key: str) -> None:
        """Whose key it is."""
        self._observe("key-present", self.place, namespace, "A")
        if self.seen is not None:
            self.seen.namespace, self.seen.key = namespace, f"{namespace}:{key}"

    def replays(self, namespace: str, record: Record, status: int) -> None:
        """From memory, without asking the ledger."""
        self._observe("replay", self.place, namespace, status)
        if self.seen is not None:
            self.seen.way, self.seen.operation = "replay", record.id
            if self.seen.span is not None:
                self.seen.span.replays(record.outcome)

    def handling(self) -> AbstractContextManager[None]:
        """While the application runs: its own spans are inside of it."""
        span = None if self.seen is None else self.seen.span
        return nullcontext() if span is None else span.handling()

    def refuse(self) -> None:
        if self.seen is not None:
            self.seen.way = "refused"

    def pass_unprotected(self, namespace: str) -> None:
        """The ledger is away, and the route fails open."""
        self._observe("unprotected", self.place, namespace)
        if self.seen is not None:
            self.seen.way = "passed"

    def sending(self, send: Send) -> Send:
        """`send`, and the status that goes over it."""
        if self.seen is None or not self.first:
            return send

        async def send_on(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]
            await send(message)

        return send_on

    def starting(self, start_response: Callable[..., Any]) -> Callable[..., Any]:
        """The same for WSGI."""
        if self.seen is None or not self.first:
            return start_response

        def start(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            self.status = int(status[:3])
            return start_response(status, headers, *more)

        return start

    def ending(self, answer: Iterable[bytes], file_wrapper: Any) -> Iterable[bytes]:
        """`answer` of a WSGI app, and the end of the request once it is over."""
        # A server may send a file by itself, and does not read it here.
        sent = isinstance(file_wrapper, type) and isinstance(answer, file_wrapper)
        if self.seen is None or not self.first or sent or isinstance(answer, list | tuple):
            self.end(self.status or None)
            return answer
        return Flowing(answer, self)

    def end(self, status: int | None = None) -> None:
        """It is answered, if not by the one before us: without a status when it is not known."""
        if self._watch is not None and self.seen is not None and self.first:
            self._watch.end(self.seen, _OK if status is None else status)

    def fail(self) -> None:
        """The application raised, maybe after its answer had begun."""
        if self.seen is not None:
            self.seen.way = "failed"
        self.end(self.status or _BROKEN)


class Flowing:
    """An answer that is made while it is sent: it is over when the server closes it."""

    def __init__(self, answer: Iterable[bytes], request: Request) -> None:
        self._answer = answer
        self._request = request
        self._broken = False

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._answer
        except Exception:
            self._broken = True
            raise

    def close(self) -> None:
        try:
            if hasattr(self._answer, "close"):
                self._answer.close()
        finally:
            if self._broken:
                self._request.fail()
            else:
                self._request.end(self._request.status or None)


def lines_in(carried: MutableMapping[str, Any]) -> list[tuple[bytes, bytes]]:
    """Of a request what says which trace it belongs to, from an ASGI scope or a WSGI environ."""
    if "headers" in carried:
        lines: list[tuple[bytes, bytes]] = carried["headers"]
        return lines
    names = (("traceparent", "HTTP_TRACEPARENT"), ("tracestate", "HTTP_TRACESTATE"))
    return [
        (name.encode(), carried[variable].encode("latin-1"))
        for name, variable in names
        if variable in carried
    ]
