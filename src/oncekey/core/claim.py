"""A claim: the right to run one operation, and the duty to say how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oncekey.core.errors import ClaimLost, StoreError
from oncekey.core.finality import is_final
from oncekey.core.model import Operation, Outcome, Record, make, operation_id_of
from oncekey.core.outgoing import Outgoing
from oncekey.core.ports import Abandon, Release, Settle, giving_back
from oncekey.core.steps import Steps, inside

if TYPE_CHECKING:
    from oncekey.core.ledger import Ledger


class Claim:
    """Every verb carries the fence; one that comes too late changes nothing: `ClaimLost`."""

    __slots__ = (
        "_ledger", "concluded", "created_at", "digest", "fence", "id", "joined", "lost",
        "operation", "outgoing", "over", "span",
    )  # fmt: skip

    def __init__(
        self,
        ledger: Ledger,
        operation: Operation,
        digest: bytes,
        number: int,
        fence: int,
        created_at: int,
    ) -> None:
        self._ledger = ledger
        self.operation = operation
        self.digest = digest
        self.id = number
        self.fence = fence
        self.created_at = created_at
        self.concluded = False
        self.joined = False
        """Settled in a transaction of the application's, which may still be rolled back."""
        self.lost = False
        """Known to have been taken over."""
        self.span: Any = None
        """Of the request that holds it, where that is traced."""
        self.over = False
        """Settled for good: nobody runs it again."""
        self.outgoing: Outgoing | None = None
        """The calls that it has made, where anybody counts them."""

    @property
    def operation_id(self) -> str:
        return operation_id_of(self.id)

    def seed(self) -> bytes:
        """The same for every claim on this operation: also after a release, or a takeover."""
        return self.digest + self.operation.fingerprint

    def settle(self, outcome: Outcome, *, transaction: Any = None) -> Record:
        """Store the outcome; with `transaction`, through the caller's own connection."""
        return self._ledger.run(self.settle_steps(outcome, transaction))

    async def asettle(self, outcome: Outcome, *, transaction: Any = None) -> Record:
        if transaction is not None:
            return await self._ledger.arun(self.settle_steps(outcome, transaction))
        settle = self._settle_of(outcome)
        try:
            answer = await self._ledger.send(settle).future
        except BaseException:
            # On its way already: this claim is the store's business now.
            self.end(None)
            raise
        if answer is True:
            return self._settled(settle)
        self.end(None)
        raise answer if isinstance(answer, BaseException) else self._lose()

    def release(self) -> None:
        """Give the key back; a retry runs again. After a takeover only a retry of the same request:
        whoever had the claim before may have done it."""
        self._ledger.run(self.release_steps())

    async def arelease(self) -> None:
        await self._ledger.arun(self.release_steps())

    def conclude(self, outcome: Outcome, *, server_errors: bool = False) -> bool:
        """Settle a final outcome, release any other. Answers whether it was settled."""
        return self._ledger.run(self.conclude_steps(outcome, server_errors))

    async def aconclude(self, outcome: Outcome, *, server_errors: bool = False) -> bool:
        return await self._ledger.arun(self.conclude_steps(outcome, server_errors))

    def abandon(self) -> None:
        """Let go without knowing how it ended, as a crash would. Does not wait."""
        if not self.concluded:
            self._ledger.forget(Abandon(self.id, self.fence))
            self.end(None)

    def take_back(self) -> None:
        """Release what went into a transaction that was rolled back. Does not wait."""
        if self.joined:
            self._ledger.forget(Release(self.id, self.fence))

    def conclude_steps(self, outcome: Outcome, server_errors: bool) -> Steps[bool]:
        final = is_final(outcome, server_errors=server_errors)
        yield from self.settle_steps(outcome, None) if final else self.release_steps()
        return final

    def settle_steps(self, outcome: Outcome, transaction: Any) -> Steps[Record]:
        settle = self._settle_of(outcome)
        try:
            done = yield inside(transaction, settle)
        except (StoreError, GeneratorExit):
            # The store keeps trying; this claim is its business now.
            self.end(None)
            raise
        if not done:
            self.end(None)
            raise self._lose()
        # In a transaction the outcome is nobody else's answer before the caller commits.
        self.joined = transaction is not None
        return self._settled(settle, shared=not self.joined)

    def release_steps(self) -> Steps[None]:
        try:
            done = yield giving_back(self.id, self.fence)
        finally:
            self.end(None)
        if not done:
            raise self._lose()

    def _lose(self) -> ClaimLost:
        self.lost = True
        return ClaimLost()

    def _settle_of(self, outcome: Outcome) -> Settle:
        ledger = self._ledger
        now = ledger.clock.now()
        if ledger.fault is not None:
            ledger.fault("before-settle")
        if self.span is not None:
            outcome = self.span.settling(outcome)
        kept = ledger.retention_classes.milliseconds(self.operation.retention)
        return make(Settle, (self.id, self.fence, outcome, now, now + kept))

    def _settled(self, settle: Settle, *, shared: bool = True) -> Record:
        ledger = self._ledger
        if ledger.fault is not None:
            ledger.fault("after-settle")
        ref, fingerprint, request_id, retention, _ = self.operation
        number, fence, outcome, completed_at, expires_at = settle
        values = (
            number, ref, fingerprint, 0, fence, request_id, retention,
            self.created_at, expires_at, completed_at, outcome, None,
        )  # fmt: skip
        record = make(Record, values)
        self.concluded, self.over = True, shared
        if self.span is not None:
            self.span.settled()
        ledger.ended(self, record if shared else None)
        return record

    def end(self, settled: Record | None) -> None:
        self.concluded = True
        self._ledger.ended(self, settled)
