"""The middle of a blocking exchange: takes an answer's chunks as they come, says what may leave."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Literal

from oncekey.core.claim import Claim
from oncekey.core.errors import ClaimLost, LedgerClosed, OnceKeyError, StoreError, TerminalError
from oncekey.core.finality import is_final_status
from oncekey.core.ledger import Ledger
from oncekey.core.model import Headers, Kind, Outcome
from oncekey.wire.answer import WINNER_WAIT, Way, first_marks, way_of
from oncekey.wire.exchange import outcome_of, replay_of, terminal_outcome
from oncekey.wire.problem import Response, problem, ran_but_not_stored
from oncekey.wire.rule import Rule


class Gatherer:
    """Feed it, then `finish`; each gives the bytes that may leave now.

    `leaving` turns true when the first lines must be sent before the answer is complete.
    `replacement` is the answer to give instead, when the one gathered may not be given.
    """

    def __init__(self, ledger: Ledger, rule: Rule, claim: Claim) -> None:
        self._ledger = ledger
        self._rule = rule
        self.claim = claim
        self._held: list[bytes] = []
        self._size = 0
        self._way: Way | Literal["pass", "done"] = ""
        self.leaving = False
        self.replacement: Response | None = None

    def start(self, status: int, headers: Headers) -> None:
        """The first lines; they may come again, as an error page, until something has left."""
        self._status = status
        self._headers = headers
        self._held.clear()
        self._size = 0
        self._way = way_of(headers, self._rule)

    def expect_whole(self) -> None:
        """Every chunk is there already, so that more than one does not make a stream."""
        self._way = self._way or "collect"

    def feed(self, chunk: bytes) -> bytes:
        if not chunk:
            return b""
        match self._way:
            case "pass":
                return chunk
            case "tee":
                return self._tee(chunk)
            case "stream":
                return self._begin_stream(chunk)
            case "" if self._held:
                return self._begin_stream(chunk)
            case "collect" | "":
                self._hold(chunk)
                return self._begin_stream(b"") if self._is_too_large() else b""
            case "done":
                return b""

    def finish(self) -> bytes:
        """The answer is complete: store it before the rest of it leaves."""
        match self._way:
            case "collect" | "":
                return self._store_whole()
            case "stream":
                return self._begin_stream(b"")
            case "tee":
                self._store_events()
            case "pass" | "done":
                self.let_go()
        return b""

    def fail(self, error: TerminalError) -> None:
        """A final failure takes the place of the answer."""
        outcome = terminal_outcome(error)
        if self._keep(outcome, final=True):
            headers = (*outcome.headers, *self.marks)
            self.replacement = Response(outcome.status, headers, outcome.body)

    def lose(self, error: ClaimLost) -> None:
        """The app learnt first that its claim was taken over: its caller gets what was kept."""
        if not self.claim.lost or self.leaving:
            raise error
        self.replacement = self._answer_of_winner()

    def let_go(self) -> None:
        """A claim that was not concluded is given back. Whoever lets go has nobody to tell."""
        if not self.claim.concluded:
            self._release()

    def give_up(self, error: BaseException) -> None:
        """Handlers that raise are retried; one that was cut off ended as a crash would."""
        if not isinstance(error, Exception):
            self.claim.abandon()
        elif self.claim.joined or not self.claim.concluded:
            # What the app settled in its own transaction stays, if that was committed.
            self._release()

    def _release(self) -> None:
        with suppress(OnceKeyError):
            self.claim.release()

    @property
    def concluded(self) -> bool:
        return self.claim.concluded

    @property
    def marks(self) -> Headers:
        return first_marks(self.claim.operation_id, stored=self._way != "pass")

    @property
    def is_keeping(self) -> bool:
        """Whether what is still to come belongs to the outcome."""
        return self._way == "tee"

    # -- the ways ------------------------------------------------------------------------

    def _hold(self, chunk: bytes) -> None:
        self._held.append(chunk)
        self._size += len(chunk)

    def _is_too_large(self) -> bool:
        return self._size > self._rule.max_stored_body

    def _is_final(self) -> bool:
        return is_final_status(self._status, self._rule.store_server_errors)

    def _store_whole(self) -> bytes:
        body = b"".join(self._held)
        outcome = outcome_of(self._status, self._headers, body, self._rule)
        self._way = "done"
        return body if self._keep(outcome, final=self._is_final()) else b""

    def _begin_stream(self, chunk: bytes) -> bytes:
        """The store learns that this answer is not kept before its first byte leaves."""
        unkept = Outcome(Kind.UNKEPT, self._status)
        if self._is_final() and not self._keep(unkept, final=True):
            return b""
        self._way = "pass"
        self.leaving = True
        held, self._held = self._held, []
        return b"".join([*held, chunk])

    def _tee(self, chunk: bytes) -> bytes:
        """Events go out as they come; the end of the answer waits for the store."""
        self.leaving = True
        self._size += len(chunk)
        if self._is_too_large():
            self._held.clear()
        else:
            self._held.append(chunk)
        return chunk

    def _store_events(self) -> None:
        self.leaving = True
        self._way = "done"
        if not self._is_final() or self.claim.concluded:
            self.let_go()
        elif self._is_too_large():
            self.claim.settle(Outcome(Kind.UNKEPT, self._status))
        else:
            body = b"".join(self._held)
            self.claim.settle(outcome_of(self._status, self._headers, body, self._rule))

    # -- the store -----------------------------------------------------------------------

    def _keep(self, outcome: Outcome, *, final: bool) -> bool:
        """Settle or release. False when there is a replacement now."""
        claim = self.claim
        if claim.concluded and not claim.lost and (final or not claim.joined):
            claim.take_back()
            return True
        try:
            if final:
                claim.settle(outcome)
            else:
                claim.release()
        except ClaimLost:
            self.replacement = self._answer_of_winner()
        except (StoreError, LedgerClosed):
            self.replacement = ran_but_not_stored(claim.operation_id)
        if self.replacement is not None:
            self._way = "done"
        return self.replacement is None

    def _answer_of_winner(self) -> Response:
        """Our claim was taken over: the answer is the one that was kept, if there is one yet."""
        claim = self.claim
        record = self._ledger.attach(claim.operation, WINNER_WAIT)
        if record is None:
            return problem("claim-lost", operation_id=claim.operation_id)
        return replay_of(record)


class Flow:
    """The rest of an answer that leaves while it is made. A server iterates and closes it."""

    def __init__(
        self,
        first: bytes,
        chunks: Iterator[bytes],
        gatherer: Gatherer,
        close: Callable[[], None],
    ) -> None:
        self._first = first
        self._chunks = chunks
        self._gatherer = gatherer
        self._close = close
        self._ended = False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self._first:
            first, self._first = self._first, b""
            return first
        try:
            return self._gatherer.feed(next(self._chunks))
        except StopIteration:
            self._end()
            raise
        except BaseException as error:
            self._ended = True
            self._gatherer.give_up(error)
            raise

    def close(self) -> None:
        try:
            if not self._ended:
                self._drain()
        finally:
            self._close()

    def _drain(self) -> None:
        """The client went away. What is being kept is still worth having for its retry."""
        self._ended = True
        try:
            if self._gatherer.is_keeping:
                for chunk in self._chunks:
                    self._gatherer.feed(chunk)
            self._gatherer.finish()
        except BaseException as error:
            self._gatherer.give_up(error)
            raise

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self._gatherer.finish()
