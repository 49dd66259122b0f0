"""The middle of an ASGI exchange: run the app under its claim, keep its answer, then let it out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from oncekey.core.claim import Claim
from oncekey.core.current import CURRENT
from oncekey.core.errors import ClaimLost, LedgerClosed, StoreError, TerminalError
from oncekey.core.finality import is_final_status
from oncekey.core.ledger import Ledger
from oncekey.core.model import Kind, Outcome, make
from oncekey.integrations.receiver import Receiver
from oncekey.wire.answer import NOT_STORED, WINNER_WAIT, way_of
from oncekey.wire.exchange import outcome_of, replay_of, terminal_outcome
from oncekey.wire.headers import kept
from oncekey.wire.problem import Response, problem, ran_but_not_stored
from oncekey.wire.rule import Rule

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]


class Collector:
    """Stands between the app and the client for one keyed request.

    The app's answer goes one of three ways, known from its first lines:
    `collect` it whole, store it, send it; `tee` events to the client while keeping them; or
    `stream` what cannot be kept, after the store knows that it will not be.
    What follows is `pass`, the rest of a stream; `done`; or `replaced`, when another answer left.
    """

    __slots__ = (
        "_chunks",
        "_claim",
        "_ledger",
        "_receiver",
        "_rule",
        "_send",
        "_size",
        "_start",
        "_way",
    )
    _receiver: Receiver
    _start: Message

    def __init__(self, ledger: Ledger, rule: Rule, claim: Claim, send: Send) -> None:
        self._ledger = ledger
        self._rule = rule
        self._claim = claim
        self._send = send
        self._chunks: list[bytes] = []
        self._size = 0
        self._way = ""

    async def run(self, app: Any, scope: MutableMapping[str, Any], receiver: Receiver) -> None:
        claim = self._claim
        scope["oncekey.claim"] = claim
        if scope.get("extensions"):
            # Answers must pass through here as bytes to be kept.
            scope["extensions"] = {}
        self._receiver = receiver
        token = CURRENT.set(claim)
        try:
            await app(scope, receiver, self._collect)
        except TerminalError as error:
            if claim.concluded:
                await self._let_go()
                raise
            await self._fail(error)
        except ClaimLost:
            if not claim.lost or self._way:
                await self._let_go()
                raise
            # The app learnt it first, in its own transaction, which it has rolled back.
            await self._respond(await self._answer_of_winner())
        except Exception:
            await self._let_go()
            raise
        except BaseException:
            # Cut off in the middle: nobody knows how far it came, so it ends as a crash would.
            claim.abandon()
            raise
        finally:
            CURRENT.reset(token)
        if not claim.concluded:
            await claim.arelease()

    async def _let_go(self) -> None:
        """After a failure: a retry runs again, unless the app committed an outcome by itself."""
        if self._claim.joined or not self._claim.concluded:
            with suppress(ClaimLost):
                await self._claim.arelease()

    async def _fail(self, error: TerminalError) -> None:
        outcome = terminal_outcome(error)
        if await self._keep(outcome, True):
            mark = (b"x-operation-id", self._claim.operation_id.encode())
            await self._respond(Response(outcome.status, (*outcome.headers, mark), outcome.body))

    # -- the app's answer ----------------------------------------------------------------

    async def _collect(self, message: Message) -> None:
        kind = message["type"]
        if kind == "http.response.start":
            self._start = message
            return
        if kind != "http.response.body" or self._way == "done":
            await self._send(message)
            return
        chunk, more = message.get("body", b""), message.get("more_body", False)
        if not (self._way or more or len(chunk) > self._rule.max_stored_body):
            # Nearly every answer comes in one piece.
            await self._finish(chunk)
        elif self._way != "replaced":
            await self._go_on(chunk, more)
        if not more:
            self._receiver.finish()

    async def _go_on(self, chunk: bytes, more: bool) -> None:
        if not self._way:
            self._way = way_of(self._start.get("headers", ()), self._rule) or "stream"
        match self._way:
            case "collect":
                await self._gather(chunk, more)
            case "tee":
                await self._tee(chunk, more)
            case "stream":
                await self._begin_stream(chunk, more)
            case _:
                await self._pass(chunk, more)

    async def _gather(self, chunk: bytes, more: bool) -> None:
        self._chunks.append(chunk)
        self._size += len(chunk)
        if self._size > self._rule.max_stored_body:
            self._chunks, chunk = [], b"".join(self._chunks)
            await self._begin_stream(chunk, more)
        elif not more:
            await self._finish(b"".join(self._chunks))

    async def _finish(self, body: bytes) -> None:
        """The answer is whole: store it, then send it."""
        self._way = "done"
        status, headers = self._start["status"], self._start.get("headers", ())
        outcome = make(Outcome, (Kind.RESPONSE, status, kept(headers, self._rule), body))
        if await self._keep(outcome, is_final_status(status, self._rule.store_server_errors)):
            mark = (b"x-operation-id", self._claim.operation_id.encode())
            start = {"type": "http.response.start", "status": status, "headers": [*headers, mark]}
            await self._send(start)
            await self._send({"type": "http.response.body", "body": body})

    async def _begin_stream(self, chunk: bytes, more: bool) -> None:
        """The store learns that this answer is not kept before its first byte leaves."""
        status = self._start["status"]
        final = self._is_final(status)
        if final and not await self._keep(Outcome(Kind.UNKEPT, status), final=True):
            return
        self._way = "pass"
        self._receiver.let_through()
        await self._send(self._marked_start(NOT_STORED))
        await self._pass(chunk, more)

    async def _pass(self, chunk: bytes, more: bool) -> None:
        await self._send({"type": "http.response.body", "body": chunk, "more_body": more})

    async def _tee(self, chunk: bytes, more: bool) -> None:
        """Events go out as they come; the last byte waits for the store."""
        if not self._chunks:
            await self._send(self._marked_start())
        self._chunks.append(chunk)
        self._size += len(chunk)
        if self._size > self._rule.max_stored_body:
            # Too much to keep, so nothing of it is held any longer.
            self._chunks = [b""]
        if not more and self._is_final(self._start["status"]) and not self._claim.concluded:
            await self._claim.asettle(self._events())
        await self._pass(chunk, more)

    def _events(self) -> Outcome:
        status, headers = self._start["status"], tuple(self._start.get("headers", ()))
        if self._size > self._rule.max_stored_body:
            return Outcome(Kind.UNKEPT, status)
        return outcome_of(status, headers, b"".join(self._chunks), self._rule)

    # -- the store and the client --------------------------------------------------------

    def _is_final(self, status: int) -> bool:
        return is_final_status(status, self._rule.store_server_errors)

    async def _keep(self, outcome: Outcome, final: bool) -> bool:
        """Settle or release. False when the client has been given another answer instead."""
        claim = self._claim
        if claim.concluded and not claim.lost and (final or not claim.joined):
            claim.take_back()
            return True
        try:
            if final:
                await claim.asettle(outcome)
            else:
                await claim.arelease()
        except ClaimLost:
            self._way = "replaced"
            await self._respond(await self._answer_of_winner())
            return False
        except (StoreError, LedgerClosed):
            self._way = "replaced"
            await self._respond(ran_but_not_stored(claim.operation_id))
            return False
        return True

    async def _answer_of_winner(self) -> Response:
        """Our claim was taken over: the answer is the one that was kept, if there is one yet."""
        claim = self._claim
        record = await self._ledger.aattach(claim.operation, WINNER_WAIT)
        if record is None:
            return problem("claim-lost", operation_id=claim.operation_id)
        return replay_of(record)

    async def _respond(self, response: Response) -> None:
        status, headers, body = response
        await self._send(
            {"type": "http.response.start", "status": status, "headers": list(headers)}
        )
        await self._send({"type": "http.response.body", "body": body})

    def _marked_start(self, *marks: tuple[bytes, bytes]) -> Message:
        operation = (b"x-operation-id", self._claim.operation_id.encode())
        return {**self._start, "headers": [*self._start.get("headers", ()), operation, *marks]}
