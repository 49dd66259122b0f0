"""One caller beginning one operation: claim it, or learn what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from oncekey.core.decision import (
    Busy,
    Decision,
    Mismatch,
    Proceed,
    Renew,
    Replay,
    TakeOver,
    Unknown,
    decide,
)
from oncekey.core.errors import LedgerClosed, StoreUnavailable
from oncekey.core.model import Operation, Outcome, Record
from oncekey.core.ports import (
    Abandon,
    Answer,
    Found,
    Gone,
    Held,
    Insert,
    Replace,
    Request,
    Take,
)
from oncekey.core.recovery import CannotTell, DidNotHappen, Recover
from oncekey.core.steps import Call, Nap, Pauses, Steps, inside

if TYPE_CHECKING:
    from oncekey.core.events import Seen
    from oncekey.core.ledger import Ledger

# Each round lost means somebody else made progress; more than this means the store is at fault.
_MOST_ROUNDS = 50


class Sent(NamedTuple):
    """A claim that was sent already, its answer, and the purge epoch read before it was sent."""

    insert: Insert
    answer: Answer
    epoch: int | None


class Beginning:
    def __init__(
        self,
        ledger: Ledger,
        operation: Operation,
        digest: bytes,
        recover: Recover | None = None,
        transaction: Any = None,
        seen: Seen | None = None,
        *,
        observed: bool = True,
    ) -> None:
        self._ledger = ledger
        self._operation = operation
        self.digest = digest
        self._recover = recover
        self.transaction = transaction
        self._seen = seen
        self._observed = observed

    def steps(self, wait: float, sent: Sent | None = None) -> Steps[Decision]:
        """Claim; while somebody else runs it, wait for the answer, `wait` seconds at most."""
        if self._ledger.closed:
            raise LedgerClosed
        pauses = Pauses(self._ledger.clock, wait)
        ours = self._ledger.runs(self._operation, self.digest)
        # What this process runs itself it need not ask the store about, not at once at least.
        ask = not ours or sent is not None
        while True:
            pause = pauses.next(ours=ours)
            if ask or pause is None:
                decision = yield from self._claim(sent)
                sent = None
                if not isinstance(decision, Busy) or pause is None:
                    return decision
            settled = yield Nap(self.digest, pause)
            ours, ask = self._ledger.runs(self._operation, self.digest), True
            if isinstance(settled, Record):
                same = settled.fingerprint == self._operation.fingerprint
                return Replay(settled) if same else Mismatch(settled)

    def _claim(self, sent: Sent | None) -> Steps[Decision]:
        ledger, transaction = self._ledger, self.transaction
        insert, answer, epoch = sent or Sent(self._insert(), None, ledger.cache.epoch())
        request: Request = insert
        for _ in range(_MOST_ROUNDS):
            if answer is None:
                answer = yield inside(transaction, request)
            match answer:
                case Held(fence):
                    return ledger.proceed(insert, fence)
                case Gone():
                    request, answer = (insert := self._insert()), None
                    continue
                case _:
                    assert isinstance(answer, Found)
            verdict = decide(answer.record, answer.lapsed, self._operation, ledger.clock.now())
            answer = None
            match verdict:
                case Renew(record):
                    request = Replace(record.id, record.fence, insert := self._insert())
                case TakeOver(record) as takeover:
                    answer = yield inside(transaction, Take(record.id, self.digest, record.fence))
                    if isinstance(answer, Held):
                        return (yield from self._taken(takeover))
                case Replay(record) as replay:
                    # What only this transaction sees may still be rolled back.
                    if transaction is None:
                        ledger.cache.put(self.digest, record, epoch)
                    return replay
                case other:
                    return other
        raise StoreUnavailable("the claim was contended for too long; try again")

    def _taken(self, takeover: TakeOver) -> Steps[Decision]:
        """The claim of a dead holder is ours; with `ask`, the application says what it finds."""
        old = takeover.record
        # The record goes on under the request that first made it, and under its retention, unless
        # that class is gone: an outcome without one could never be stored.
        known = old.retention in self._ledger.retention_classes
        retention = old.retention if known else self._operation.retention
        first = self._operation._replace(request_id=old.request_id, retention=retention)
        taken = Insert(old.id, self.digest, first, old.created_at, old.expires_at)
        proceed = self._ledger.proceed(taken, old.fence + 1)
        if self._observed:
            namespace, endpoint = self._operation.ref.scope
            place = endpoint if self._seen is None else self._seen.endpoint
            self._ledger.observe("takeover", place, namespace)
        if not takeover.ask:
            return proceed
        claim = proceed.claim
        try:
            found = (yield Call(self._recover, (self._operation,))) if self._recover else None
        except BaseException:
            claim.abandon()
            raise
        match found:
            case Outcome():
                return Replay((yield from claim.settle_steps(found, self.transaction)))
            case DidNotHappen():
                return Proceed(claim)
            case CannotTell() | _:
                yield inside(self.transaction, Abandon(old.id, claim.fence))
                claim.end(None)
                return Unknown(old)

    def _insert(self) -> Insert:
        return self._ledger.insert_of(self._operation, self.digest)
