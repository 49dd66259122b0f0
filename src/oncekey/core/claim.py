"""A claim: the right to run one operation, and the duty to say how it ended."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from oncekey.core.errors import ClaimLost
from oncekey.core.finality import is_final
from oncekey.core.model import Operation, Outcome, Record
from oncekey.core.ports import Abandon, Release, Settle
from oncekey.core.steps import Within

if TYPE_CHECKING:
    from oncekey.core.ledger import Ledger


class Claim:
    """Every verb carries the fence; one that comes too late changes nothing and raises `ClaimLost`."""

    __slots__ = ("_epoch", "_ledger", "concluded", "digest", "operation", "record")

    def __init__(
        self,
        ledger: Ledger,
        operation: Operation,
        digest: bytes,
        record: Record,
        epoch: int | None,
    ) -> None:
        self._ledger = ledger
        self._epoch = epoch
        self.operation = operation
        self.digest = digest
        self.record = record
        self.concluded = False

    @property
    def operation_id(self) -> str:
        return self.record.operation_id

    def settle(self, outcome: Outcome, *, transaction: Any = None) -> Record:
        """Store the outcome; with `transaction`, through the caller's own connection."""
        return self._ledger.run(self.settle_steps(outcome, transaction))

    async def asettle(self, outcome: Outcome, *, transaction: Any = None) -> Record:
        return await self._ledger.arun(self.settle_steps(outcome, transaction))

    def release(self) -> None:
        """Give the key back; a retry runs again."""
        self._ledger.run(self.release_steps())

    async def arelease(self) -> None:
        await self._ledger.arun(self.release_steps())

    def conclude(self, outcome: Outcome, *, server_errors: bool = False) -> Record | None:
        """Settle a final outcome, release any other. Answers the record when it was settled."""
        return self._ledger.run(self.conclude_steps(outcome, server_errors))

    async def aconclude(self, outcome: Outcome, *, server_errors: bool = False) -> Record | None:
        return await self._ledger.arun(self.conclude_steps(outcome, server_errors))

    def abandon(self) -> None:
        """Let go without knowing how it ended, as a crash would. Does not wait."""
        if not self.concluded:
            self._ledger.forget(Abandon(self.record.id, self.record.fence))
            self.end(None)

    def conclude_steps(self, outcome: Outcome, server_errors: bool) -> Generator[Any, Any, Record | None]:
        if is_final(outcome, server_errors=server_errors):
            return (yield from self.settle_steps(outcome, None))
        yield from self.release_steps()
        return None

    def settle_steps(self, outcome: Outcome, transaction: Any) -> Generator[Any, Any, Record]:
        ledger, old = self._ledger, self.record
        now = ledger.clock.now()
        expires_at = now + ledger.retention_classes.milliseconds(old.retention)
        request = Settle(old.id, old.fence, outcome, now, expires_at)
        ledger.fault("before-settle")
        done = yield (request if transaction is None else Within(transaction, request))
        ledger.fault("after-settle")
        settled = Record(*old[:8], expires_at, now, outcome, old.link)
        # Inside a transaction the outcome is not everyone's answer before the caller commits.
        self.end(settled if done and transaction is None else None)
        if not done:
            raise ClaimLost
        return settled

    def release_steps(self) -> Generator[Any, Any, None]:
        done = yield Release(self.record.id, self.record.fence)
        self.end(None)
        if not done:
            raise ClaimLost

    def end(self, settled: Record | None) -> None:
        self.concluded = True
        self._ledger.ended(self, settled, self._epoch)
