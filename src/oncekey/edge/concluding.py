"""How a claim ends at the edge: its answer is kept before it leaves; what is not known is said."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

from oncekey.core.claim import Claim
from oncekey.core.errors import (
    ClaimLost,
    InvalidInput,
    LedgerClosed,
    StoreError,
    UpstreamError,
    UpstreamUncertain,
    UpstreamUnreachable,
)
from oncekey.core.finality import is_final_status
from oncekey.core.ledger import Ledger
from oncekey.core.model import Headers, Kind, Outcome, make
from oncekey.edge.asked import Answer
from oncekey.edge.policy import EdgeRoute
from oncekey.wire.answer import NOT_STORED, WINNER_WAIT, way_of
from oncekey.wire.exchange import replay_of
from oncekey.wire.headers import kept
from oncekey.wire.problem import (
    Response,
    outcome_unknown_behind,
    problem,
    problem_of,
    ran_but_not_stored,
)

_MISSED = (StoreError, LedgerClosed)
# Streams whose client left, read to their end: a task that nothing refers to may be collected.
_left: set[asyncio.Task[None]] = set()


class _Events:
    """What is kept of a stream while it is small enough; nothing of it once it is not."""

    def __init__(self, first: bytes, limit: int) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._limit = limit
        self.add(first)

    def add(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size <= self._limit:
            self._pieces.append(chunk)
        else:
            self._pieces.clear()

    @property
    def body(self) -> bytes | None:
        return b"".join(self._pieces) if self._size <= self._limit else None


class Concluding:
    """One claim, and the answer its request gets."""

    __slots__ = ("_claim", "_ledger", "_route")

    def __init__(self, ledger: Ledger, route: EdgeRoute, claim: Claim) -> None:
        self._ledger = ledger
        self._route = route
        self._claim = claim

    async def answered(self, answer: Answer) -> Answer:
        status, headers, body, rest = answer
        if rest is not None:
            return await self._streamed(answer, rest)
        rule = self._route.rule
        outcome = make(Outcome, (Kind.RESPONSE, status, kept(headers, rule), body))
        missed = await self._keep(outcome, final=self._is_final(status))
        if missed is not None:
            return Answer(*missed)
        return Answer(status, [*headers, self._mark], body)

    async def not_sent(self, error: UpstreamUnreachable | InvalidInput) -> Answer:
        """The key is given back, and a retry runs."""
        with suppress(ClaimLost, *_MISSED):
            await self._claim.arelease()
        if isinstance(error, InvalidInput):
            return Answer(*problem_of(error))
        return self._problem(error.code)

    async def uncertain(self, error: UpstreamUncertain) -> Answer:
        """It was asked and broke off. Unless the route says otherwise, it is never run again by
        itself: everyone learns that it is not known how it ended, until somebody looks."""
        claim = self._claim
        self._ledger.observe("uncertain", claim.operation.ref.scope.endpoint)
        if self._route.uncertain != "refuse":
            claim.abandon()
            return self._problem(error.code)
        told = outcome_unknown_behind(claim.operation_id)
        outcome = Outcome(Kind.RESPONSE, told.status, _without_operation(told.headers), told.body)
        missed = await self._keep(outcome, final=True)
        return self._problem(error.code) if missed is None else Answer(*missed)

    # -- answers that come piece by piece ------------------------------------------------

    async def _streamed(self, answer: Answer, rest: AsyncGenerator[bytes, None]) -> Answer:
        status, headers, body, _ = answer
        if way_of(headers, self._route.rule) == "tee" and self._is_final(status):
            return Answer(status, [*headers, self._mark], body, self._teed(answer, rest))
        # The store learns that this answer is not kept before its first byte leaves.
        missed = await self._keep(Outcome(Kind.UNKEPT, status), final=self._is_final(status))
        if missed is not None:
            await _close(rest)
            return Answer(*missed)
        return Answer(status, [*headers, self._mark, NOT_STORED], body, rest)

    async def _teed(
        self, answer: Answer, rest: AsyncGenerator[bytes, None]
    ) -> AsyncGenerator[bytes, None]:
        """Events go out as they come; the end waits for the store. A client that leaves does not
        stop them: they are read to their end, for the retry."""
        events = _Events(answer.body, self._route.rule.max_stored_body)
        try:
            async for chunk in rest:
                events.add(chunk)
                yield chunk
            await self._settle_events(answer, events)
        except GeneratorExit:
            task = asyncio.create_task(self._read_on(answer, rest, events))
            _left.add(task)
            task.add_done_callback(_left.discard)
            raise
        except UpstreamError:
            await self.uncertain(UpstreamUncertain())
            raise

    async def _read_on(
        self, answer: Answer, rest: AsyncGenerator[bytes, None], events: _Events
    ) -> None:
        try:
            async for chunk in rest:
                events.add(chunk)
        except UpstreamError:
            await self.uncertain(UpstreamUncertain())
            return
        await self._settle_events(answer, events)

    async def _settle_events(self, answer: Answer, events: _Events) -> None:
        body = events.body
        outcome = Outcome(Kind.UNKEPT, answer.status)
        if body is not None:
            headers = kept(answer.headers, self._route.rule)
            outcome = Outcome(Kind.RESPONSE, answer.status, headers, body)
        await self._keep(outcome, final=True)

    # -- the store -----------------------------------------------------------------------

    def _is_final(self, status: int) -> bool:
        return is_final_status(status, self._route.rule.store_server_errors)

    async def _keep(self, outcome: Outcome, *, final: bool) -> Response | None:
        """Settle or release. An answer is what the client gets instead."""
        claim = self._claim
        try:
            if final:
                await claim.asettle(outcome)
            else:
                await claim.arelease()
        except ClaimLost:
            return await self._answer_of_winner()
        except _MISSED:
            return ran_but_not_stored(claim.operation_id)
        return None

    async def _answer_of_winner(self) -> Response:
        claim = self._claim
        with suppress(*_MISSED):
            record = await self._ledger.aattach(claim.operation.ref, WINNER_WAIT)
            if record is not None:
                return replay_of(record)
        return problem("claim-lost", operation_id=claim.operation_id)

    @property
    def _mark(self) -> tuple[bytes, bytes]:
        return b"x-operation-id", self._claim.operation_id.encode()

    def _problem(self, code: str) -> Answer:
        return Answer(*problem(code, operation_id=self._claim.operation_id))


def _without_operation(headers: Headers) -> Headers:
    """A replay brings the line of its own."""
    return tuple([pair for pair in headers if pair[0] != b"x-operation-id"])


async def _close(rest: AsyncGenerator[bytes, None]) -> None:
    close = getattr(rest, "aclose", None)
    if close is not None:
        await close()
