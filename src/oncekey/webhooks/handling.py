"""One item of a delivery: claimed, acted on, concluded. Whatever happens to it is a `Result`."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from oncekey.core.claim import Claim
from oncekey.core.decision import Busy, Decision, Mismatch, Proceed, Replay, Unknown
from oncekey.core.deliveries import Verdict
from oncekey.core.errors import ClaimLost, LedgerClosed, OnceKeyError, StoreError
from oncekey.core.ledger import Ledger
from oncekey.core.model import Kind, Operation, Outcome, Record, State
from oncekey.webhooks import replies
from oncekey.webhooks.acting import (
    Acting,
    Answered,
    Broken,
    Done,
    Ending,
    Failed,
    Postponed,
    Task,
)
from oncekey.webhooks.delivery import Event, Item
from oncekey.webhooks.naming import body_operation_of, effect_key, place_of
from oncekey.webhooks.sources import Source
from oncekey.webhooks.spans import part
from oncekey.wire.answer import WINNER_WAIT
from oncekey.wire.problem import (
    Response,
    outcome_unknown_to_provider,
    problem,
    problem_of,
    ran_but_not_stored,
)

log = logging.getLogger("oncekey")

Standing = Literal["done", "failed", "again"]
"""What a provider is to make of it: over, over and bad, or to be delivered again."""
_AWAY = (StoreError, LedgerClosed)


class Result(NamedTuple):
    verdict: Verdict
    standing: Standing
    response: Response
    operation: int | None = None
    reason: str = ""


class Unheld(NamedTuple):
    """It is not ours to act on; this is what became of it."""

    result: Result


class Held:
    """The claim of an item; and that of its body, when its identifier is not signed."""

    def __init__(self, claim: Claim, body: Claim | None) -> None:
        self.claim = claim
        self._body = body

    async def settle(self, outcome: Outcome) -> None:
        """What was done is settled whatever becomes of its body, which only serves to know it."""
        try:
            if self._body is None:
                await self.claim.asettle(outcome)
                return
            # Side by side, so that they share a commit.
            settling = (self._settle(self._body), self.claim.asettle(outcome))
            for ended in await asyncio.gather(*settling, return_exceptions=True):
                if isinstance(ended, BaseException):
                    raise ended
        finally:
            self.abandon()
            if self.claim.span is not None:
                # Also where it failed.
                self.claim.span.settled()

    async def _settle(self, body: Claim) -> None:
        name = json.dumps(self.claim.operation.ref.key).encode()
        with suppress(ClaimLost, *_AWAY):
            await body.asettle(Outcome(Kind.VALUE, body=name))

    async def release(self) -> None:
        try:
            if self._body is not None:
                with suppress(ClaimLost):
                    await self._body.arelease()
            await self.claim.arelease()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """As a crash would leave it: the next attempt goes on with the same operation."""
        for each in (self._body, self.claim):
            if each is not None:
                each.abandon()


class Handling:
    def __init__(self, ledger: Ledger, acting: Acting) -> None:
        self._ledger = ledger
        self._acting = acting

    async def handle(
        self, source: Source, event: Event, item: Item, operation: Operation, span: Any = None
    ) -> Result:
        """Raises only what cuts it off, as a cancellation. `span` is None where nobody traces."""
        try:
            with part(span, "claim"):
                held = await self._claim(source, event, item, operation, span)
        except OnceKeyError as error:
            return Result("released", "again", problem_of(error), None, str(error))
        if isinstance(held, Unheld):
            return held.result
        task = Task(source, event, item, operation, effect_key(held.claim))
        try:
            with part(span, type(source.then).__name__.lower()):
                ending = await self._acting.act(task)
            self._reach("webhook-acted")
            return await self._conclude(held, ending)
        except Exception:
            # Whatever broke, here or in what follows: the provider is to deliver it again.
            log.exception("the delivery %s could not be handled", held.claim.operation_id)
            held.abandon()
            response = problem("internal-error", operation_id=held.claim.operation_id)
            return Result("released", "again", response, held.claim.id, "internal-error")
        except BaseException:
            # Cut off in the middle: nobody knows how far it came, so it ends as a crash would.
            held.abandon()
            raise

    # -- before --------------------------------------------------------------------------

    async def _claim(
        self, source: Source, event: Event, item: Item, operation: Operation, span: Any
    ) -> Held | Unheld:
        body: Claim | None = None
        if not item.signed and source.repeats == "refuse":
            named = body_operation_of(source, event, item, operation.ref.key)
            match await self._ledger.abegin(named, observed=False):
                case Proceed(claim):
                    body = claim
                case Replay():
                    pass
                case other:
                    return Unheld(_known_body(other))
        try:
            decision = await self._ledger.abegin(operation, observed=False)
            if span is not None:
                span.decided(decision)
            if isinstance(decision, Proceed):
                if decision.claim.fence > 1:
                    place, namespace = place_of(source.provider), operation.ref.scope.namespace
                    self._ledger.observe("takeover", place, namespace)
                return Held(decision.claim, body)
            if body is not None:
                await body.arelease()
        except BaseException:
            if body is not None:
                body.abandon()
            raise
        return Unheld(_known(decision))

    # -- after ---------------------------------------------------------------------------

    async def _conclude(self, held: Held, ending: Ending) -> Result:
        match ending:
            case Done(shape, about):
                told = f"{shape['status']}: {about}" if about else str(shape["status"])
                return await self._keep(held, replies.done(shape), told)
            case Failed(code, detail):
                kept = await self._keep(held, replies.failed(ending), f"{code}: {detail}")
                # Also where the provider hears that all is well.
                return kept._replace(verdict="failed") if kept.verdict == "accepted" else kept
            case Answered(outcome, final):
                status = f"the service behind answered {outcome.status}"
                if final:
                    return await self._keep(held, outcome, status)
                response = replies.first(outcome, held.claim.operation_id, final=False)
                return await self._release(held, response, status)
            case Postponed(code, detail, untouched):
                response = replies.postponed(ending, held.claim.operation_id)
                told = f"{code}: {detail}"
                if untouched:
                    return await self._release(held, response, told)
                held.abandon()
                return Result("released", "again", response, held.claim.id, told)
            case Broken():
                return await self._break(held, ending)

    async def _keep(self, held: Held, outcome: Outcome, reason: str) -> Result:
        claim = held.claim
        try:
            await held.settle(outcome)
        except ClaimLost:
            return await self._of_winner(claim)
        except _AWAY as error:
            # What was done is known by its key to the next attempt.
            response = ran_but_not_stored(claim.operation_id)
            return Result("uncertain", "again", response, claim.id, str(error))
        response = replies.first(outcome, claim.operation_id)
        failed = outcome.state is State.FAILED
        verdict: Verdict = "failed" if failed else "accepted"
        return Result(verdict, "failed" if failed else "done", response, claim.id, reason)

    async def _release(self, held: Held, response: Response, reason: str) -> Result:
        with suppress(ClaimLost, *_AWAY):
            await held.release()
        return Result("released", "again", response, held.claim.id, reason)

    async def _break(self, held: Held, broken: Broken) -> Result:
        claim, error = held.claim, broken.error
        response = problem(error.code, operation_id=claim.operation_id)
        uncertain = Result("uncertain", "again", response, claim.id, f"{error.code}: {error}")
        if broken.again:
            held.abandon()
            return uncertain
        kept = await self._keep(held, replies.unknown(), uncertain.reason)
        return uncertain if kept.verdict == "failed" else kept

    async def _of_winner(self, claim: Claim) -> Result:
        """We were too slow, and the next attempt took over: what it came to counts."""
        with suppress(*_AWAY):
            record = await self._ledger.aattach(claim.operation, WINNER_WAIT)
            if record is not None:
                if claim.span is not None:
                    claim.span.replays(record.outcome)
                return _replayed(record)
        response = problem("delivery-in-flight", operation_id=claim.operation_id)
        return Result("in-flight", "again", response, claim.id)

    def _reach(self, point: str) -> None:
        if self._ledger.fault is not None:
            self._ledger.fault(point)


def _known(decision: Decision) -> Result:
    match decision:
        case Replay(record):
            return _replayed(record)
        case Unknown(record):
            response = outcome_unknown_to_provider(record.operation_id)
            return Result("uncertain", "failed", response, record.id, "outcome-unknown")
        case Busy(record) | Mismatch(record):
            return _in_flight(record)
        case Proceed():
            raise AssertionError(decision)


def _known_body(decision: Decision) -> Result:
    """What was signed came before, under another name, or is being handled under any. Whether it
    is done is known only once that is over."""
    match decision:
        case Mismatch(record) if record.outcome is not None:
            name = record.outcome.body.decode()
            reason = f"what is signed came before as {name}"
            return Result("repeated-body", "done", replies.repeated(), None, reason)
        case Mismatch(record) | Busy(record) | Unknown(record):
            return _in_flight(record)
        case Proceed() | Replay():
            raise AssertionError(decision)


def _in_flight(record: Record) -> Result:
    response = problem("delivery-in-flight", operation_id=record.operation_id)
    return Result("in-flight", "again", response, record.id)


def _replayed(record: Record) -> Result:
    standing: Standing = "failed" if record.state is State.FAILED else "done"
    return Result("replayed", standing, replies.again(record), record.id)
