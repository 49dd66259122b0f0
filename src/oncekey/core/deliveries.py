"""The log of deliveries: what came in and what became of it, never its body or headers.

Writing never waits and never fails: a delivery is as good without its line here.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from oncekey.core.errors import OnceKeyError
from oncekey.core.flood import Flood, running_loop
from oncekey.core.identifier import number_in, text_of
from oncekey.core.ledger import Ledger
from oncekey.core.looking import Looked
from oncekey.core.ports import Waiter
from oncekey.core.steps import Steps
from oncekey.core.waiting import ThreadWaiter, waiter_for
from oncekey.core.webhooks import is_webhook_id

Verdict = Literal[
    "accepted",  # the first of its kind: what follows was done
    "failed",  # the first of its kind: what follows failed, and that is its outcome
    "replayed",  # it was done, or failed, before
    "repeated-body",  # its body was done before, under another identifier
    "in-flight",  # another attempt to deliver it is being done
    "released",  # what follows could not be done: the next attempt runs again
    "uncertain",  # whether what follows was done is not known
    "refused",  # not its provider's, or without an identifier, or too large
]
# Each of these is a claim as well, so there are never more of them than of claims. All others can
# be brought about again and again, by whoever holds one good delivery or none at all.
_UNBOUNDED = frozenset({"accepted", "failed"})
PREFIX = "dl_"
_MAX_TEXT = 300


class LoggedDelivery(NamedTuple):
    id: int
    """Grows with time."""
    webhook: str
    at: int
    verdict: str
    identifier: str = ""
    reason: str = ""
    operation: int | None = None
    """The number of the operation it was, or was a duplicate of."""
    size: int = 0
    """Of the body, in bytes."""
    times: int = 1
    """How many it stands for: a flood is one line."""
    expires_at: int = 0

    @property
    def public_id(self) -> str:
        return public_id_of(self.id)


class KeepDeliveries(NamedTuple):
    """Answer: True."""

    deliveries: tuple[LoggedDelivery, ...]


class ListDeliveries(NamedTuple):
    """A page, newest first, of numbers below `before`; with `look` only so many are looked at.
    Answer: Looked[LoggedDelivery]."""

    webhook: str | None
    before: int | None = None
    limit: int = 100
    verdict: str | None = None
    operation: int | None = None
    identifier: str | None = None
    look: int | None = None


class Deliveries:
    """For one event loop. Lines that follow closely are gathered for `gather` seconds and written
    together; of one webhook and verdict there are `most_a_minute`, and one line for the rest."""

    def __init__(self, ledger: Ledger, *, gather: float = 0.2, most_a_minute: int = 60) -> None:
        self._ledger = ledger
        self._gather = gather
        self._gathered: list[LoggedDelivery] = []
        self._flood = Flood(ledger.clock.steady, most_a_minute, self._sum_up)
        self._sent_at = float("-inf")
        self._writing: set[asyncio.Future[Any]] = set()
        self._timer: tuple[asyncio.AbstractEventLoop, asyncio.TimerHandle] | None = None

    def record(
        self,
        webhook: str,
        verdict: Verdict,
        *,
        identifier: str = "",
        reason: str = "",
        operation: int | None = None,
        size: int = 0,
    ) -> str | None:
        """The id of its line; None for what is part of a flood."""
        if verdict not in _UNBOUNDED and not self._flood.admit((webhook, verdict)):
            return None
        line = LoggedDelivery(
            self._ledger.draw(),
            webhook,
            self._ledger.clock.now(),
            verdict,
            _plain(identifier),
            _plain(reason),
            operation,
            size,
        )
        self._put(line)
        return line.public_id

    async def list(
        self,
        webhook: str | None = None,
        *,
        before: int | None = None,
        limit: int = 100,
        verdict: Verdict | None = None,
        operation: int | None = None,
        identifier: str | None = None,
        look: int | None = None,
    ) -> Looked[LoggedDelivery]:
        """Of this webhook, or of all; with `look` only so many are looked at."""
        self._send()
        if webhook is not None and not is_webhook_id(webhook):
            return Looked()
        # Whoever is told of these has not overtaken what was just sent.
        await self._ledger.arun(_sent())
        found: Looked[LoggedDelivery] = await self._ledger.aread(
            ListDeliveries(webhook, before, limit, verdict, operation, identifier, look)
        )
        return found

    async def written(self) -> None:
        """Once all that was recorded is in the store, or cannot be written there."""
        self._send()
        loop = asyncio.get_running_loop()
        writing = [each for each in self._writing if each.get_loop() is loop]
        if writing:
            await asyncio.wait(writing)

    def flush(self) -> None:
        """Write all there is, and what floods have come to: before the ledger is closed."""
        self._flood.end()
        self._send()

    # -- the steps behind the verbs ------------------------------------------------------

    def _sum_up(self, flood: tuple[str, str], count: int) -> None:
        webhook, verdict = flood
        number, now = self._ledger.draw(), self._ledger.clock.now()
        reason = f"{count} more within a minute"
        self._put(LoggedDelivery(number, webhook, now, verdict, reason=reason, times=count))

    def _put(self, delivery: LoggedDelivery) -> None:
        kept = self._ledger.retention_classes.milliseconds("webhook")
        self._gathered.append(delivery._replace(expires_at=delivery.at + kept))
        loop = running_loop()
        if loop is None or loop.time() - self._sent_at >= self._gather:
            self._send()
        elif self._timer is None or self._timer[0] is not loop:
            self._timer = (loop, loop.call_later(self._gather, self._send))

    def _send(self) -> None:
        if self._timer is not None:
            self._timer[1].cancel()
            self._timer = None
        loop = running_loop()
        self._sent_at = float("-inf") if loop is None else loop.time()
        gathered, self._gathered = tuple(self._gathered), []
        if gathered:
            # The ledger may be closed by now.
            with suppress(OnceKeyError):
                request = KeepDeliveries(gathered)
                self._ledger.store.submit(request, self._waiter_for(request))

    def _waiter_for(self, request: KeepDeliveries) -> Waiter:
        if running_loop() is None:
            return ThreadWaiter()
        waiter = waiter_for(request)
        self._writing.add(waiter.future)
        waiter.future.add_done_callback(self._writing.discard)
        return waiter


def public_id_of(number: int) -> str:
    return text_of(PREFIX, number)


def delivery_number(public_id: str) -> int | None:
    """None for anything that is not the id of a delivery."""
    return number_in(PREFIX, public_id)


def _plain(text: str) -> str:
    """Of bounded length, and without what drives a terminal or is no text to a database."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text[:_MAX_TEXT])


def _sent() -> Steps[None]:
    yield KeepDeliveries(())
