"""How a claim ends at the edge: its answer is kept before it leaves; what is not known is said."""

from __future__ import annotations

import functools
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
from oncekey.edge.asked import Answer, Following
from oncekey.edge.policy import EdgeRoute
from oncekey.edge.teeing import Gathered, Teed, TooMany
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
from oncekey.wire.rule import Rule

_MISSED = (StoreError, LedgerClosed)


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
        outcome = kept_of(answer, self._route.rule)
        missed = await self._keep(outcome, final=self._is_final(status))
        if missed is not None:
            return Answer(*missed)
        marks = [self._mark] if outcome.kind is Kind.RESPONSE else [self._mark, NOT_STORED]
        return make(Answer, (status, [*headers, *marks], body, None))

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
        namespace, endpoint = claim.operation.ref.scope
        self._ledger.observe("uncertain", endpoint, namespace)
        if self._route.uncertain != "refuse":
            claim.abandon()
            return self._problem(error.code)
        missed = await self._keep(outcome_of_uncertain(claim.operation_id), final=True)
        return self._problem(error.code) if missed is None else Answer(*missed)

    # -- answers that come piece by piece ------------------------------------------------

    async def _streamed(self, answer: Answer, rest: Following) -> Answer:
        status, headers, body, _ = answer
        if way_of(headers, self._route.rule) == "tee" and self._is_final(status):
            limit = self._route.rule.max_stored_body
            teed = Teed(body, rest, limit, functools.partial(self._conclude_events, answer))
            return Answer(status, [*headers, self._mark], body, teed)
        # The store learns that this answer is not kept before its first byte leaves.
        missed = await self._keep(Outcome(Kind.UNKEPT, status), final=self._is_final(status))
        if missed is not None:
            await rest.aclose()
            return Answer(*missed)
        return Answer(status, [*headers, self._mark, NOT_STORED], body, rest)

    async def _conclude_events(self, answer: Answer, gathered: Gathered) -> None:
        match gathered:
            case bytes():
                headers = kept(answer.headers, self._route.rule)
                outcome = Outcome(Kind.RESPONSE, answer.status, headers, gathered)
                await self._keep(outcome, final=True)
            case TooMany():
                await self._keep(Outcome(Kind.UNKEPT, answer.status), final=True)
            case UpstreamError():
                await self.uncertain(UpstreamUncertain())

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
            record = await self._ledger.aattach(claim.operation, WINNER_WAIT)
            if record is not None:
                return replay_of(record)
        return problem("claim-lost", operation_id=claim.operation_id)

    @property
    def _mark(self) -> tuple[bytes, bytes]:
        return b"x-operation-id", self._claim.operation_id.encode()

    def _problem(self, code: str) -> Answer:
        return Answer(*problem(code, operation_id=self._claim.operation_id))


def kept_of(answer: Answer, rule: Rule) -> Outcome:
    """What is kept of an answer that came whole: it may still be one that is not to be kept."""
    status, headers, body, _ = answer
    if len(body) > rule.max_stored_body or way_of(headers, rule) == "stream":
        return Outcome(Kind.UNKEPT, status)
    return make(Outcome, (Kind.RESPONSE, status, kept(headers, rule), body))


def outcome_of_uncertain(operation_id: str) -> Outcome:
    """What everyone is told of a request that broke off."""
    told = outcome_unknown_behind(operation_id)
    return Outcome(Kind.RESPONSE, told.status, _without_operation(told.headers), told.body)


def _without_operation(headers: Headers) -> Headers:
    """A replay brings the line of its own."""
    return tuple([pair for pair in headers if pair[0] != b"x-operation-id"])
