"""Walk 3 where the ledger is on Restate: one call carries a request there, is made once for its
key, and brings the answer back. What an envelope cannot carry goes the way of other stores."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from secrets import token_bytes
from typing import Any, NamedTuple

from oncekey.core.errors import LedgerClosed, OnceKeyError, StoreError, StoreUnavailable
from oncekey.core.events import Seen
from oncekey.core.events import Way as How
from oncekey.core.ledger import Ledger
from oncekey.core.model import Kind, Operation, make, operation_id_of
from oncekey.core.scope import Scope
from oncekey.edge.asked import Answer, Asked
from oncekey.edge.awaiting import SOON, Awaiting, Call, Looks
from oncekey.edge.cleaning import to_upstream
from oncekey.edge.decide import Protect
from oncekey.edge.handing import Handing
from oncekey.edge.identity.identities import Identities
from oncekey.edge.policy import EdgeRoute, Table
from oncekey.edge.proxy import Admitted, Whole
from oncekey.edge.sending import go_on
from oncekey.edge.services.proxy import ServiceProxy
from oncekey.edge.services.upstream import ServiceUpstream
from oncekey.edge.telling import note_replay
from oncekey.stores.restate.calling import Broken, Calling, Unsent
from oncekey.stores.restate.envelope import (
    LARGEST_ANSWER,
    LARGEST_REQUEST,
    Envelope,
    Reply,
    shared_key,
    unseal,
)
from oncekey.stores.restate.forward import Forwards
from oncekey.stores.restate.holding import Holding
from oncekey.stores.restate.ingress import NotServed, new_nonce
from oncekey.wire.answer import first_marks
from oncekey.wire.body import Body
from oncekey.wire.exchange import Request, operation_of, replay_of
from oncekey.wire.listed import LISTED, listed
from oncekey.wire.problem import Response, problem, problem_of

# What Restate needs beside the service behind.
_MARGIN = 5.0
# Whoever is called may change, when a process ends or a configuration does.
_ELSEWHERE = 5.0
_MOST_BESIDE = 64
_NOT_RUN: dict[int, tuple[str, How]] = {
    409: ("busy", "conflict"),
    422: ("mismatch", "mismatch"),
}


class Way(NamedTuple):
    """How an edge reaches Restate, on its own loop."""

    calling: Calling
    holding: Holding
    forwards: Forwards
    """Those of this process."""
    handing: Handing
    headers: frozenset[bytes] = LISTED


class RestateProxy(ServiceProxy):
    def __init__(self, table: Table, identities: Identities, ledger: Ledger, way: Way) -> None:
        super().__init__(table, identities, ledger)
        self._way = way
        self._looks = Looks(way.holding, way.forwards, self._troubles)
        self._carried = {id(route) for route in table.routes if _is_carried(route)}
        self._elsewhere_until = 0
        self._beside: set[asyncio.Task[None]] = set()

    def replay(
        self, asked: Asked, admitted: Admitted, body: bytes, began: float = 0.0
    ) -> Response | None:
        """Another process may have purged it."""
        return None

    async def protect(
        self, asked: Asked, admitted: Admitted, verdict: Protect, body: Whole
    ) -> Answer:
        envelope = self._envelope(asked, admitted, verdict, body)
        answer = None
        if envelope is not None:
            answer = await self._carry(asked, admitted, verdict, body, *envelope)
            if answer is not None:
                place = admitted.route.place(asked.method)
                self._ledger.observe("key-present", place, verdict.namespace, "A")
        return await super().protect(asked, admitted, verdict, body) if answer is None else answer

    # -- the envelope ----------------------------------------------------------------------

    def _envelope(
        self, asked: Asked, admitted: Admitted, verdict: Protect, body: Whole
    ) -> tuple[Envelope, Operation] | None:
        """None for what goes the other way."""
        route, rule, ledger = admitted.route, admitted.route.rule, self._ledger
        content = body.content if isinstance(body, Body) else body
        if (
            id(route) not in self._carried
            or not isinstance(content, bytes)
            or len(content) > min(LARGEST_REQUEST, rule.max_request_body)
            or ledger.clock.steady() < self._elsewhere_until
        ):
            return None
        if admitted.seen is not None and admitted.seen.span is not None:
            asked = asked._replace(headers=admitted.seen.span.sent_on(asked.headers))
        lines = to_upstream(asked, verdict.namespace, verdict.key, self.identities.gateway)
        told = listed(lines, self._way.headers)
        if any(name == b"accept" and b"text/event-stream" in value for name, value in told):
            return None
        content_type, request_id = admitted.lines.content_type, admitted.lines.request_id
        request = Request(asked.method, asked.raw_path, asked.query, content_type, content)
        scope = make(Scope, (verdict.namespace, route.place(asked.method)))
        operation = operation_of(request, verdict.raw, rule, scope, request_id)
        kept = ledger.retention_classes.milliseconds(operation.retention)
        envelope = Envelope(
            new_nonce(), ledger.draw(), *scope, verdict.raw, operation.fingerprint,
            operation.request_id, operation.retention, kept, ledger.clock.now(),
            asked.method.encode(), asked.target, told, content, token_bytes(16),
        )  # fmt: skip
        return envelope, operation

    # -- there and back --------------------------------------------------------------------

    async def _carry(
        self,
        asked: Asked,
        admitted: Admitted,
        verdict: Protect,
        body: Whole,
        envelope: Envelope,
        operation: Operation,
    ) -> Answer | None:
        rule = admitted.route.rule
        if self._ledger.closed:
            return Answer(*problem_of(LedgerClosed()))
        handing = self._way.handing
        handing.want(envelope.nonce)
        try:
            return await self._told(admitted, envelope, operation)
        except (Unsent, NotServed) as error:
            if not rule.fail_open:
                return self._unavailable(error, asked)
            # Restate has not heard of it, and never will.
            return await self._pass_unprotected(asked, admitted, verdict, body)
        except StoreError as error:
            return self._unavailable(error, asked)
        finally:
            handing.forget(envelope.nonce)

    def _unavailable(self, error: StoreError, asked: Asked) -> Answer:
        self.tell(error, asked)
        return Answer(*problem_of(error))

    async def _told(
        self, admitted: Admitted, envelope: Envelope, operation: Operation
    ) -> Answer | None:
        route, digest = admitted.route, operation.ref.digest
        early = self._early(digest, envelope, route.rule.wait)
        if early is not None:
            self._note(admitted, envelope, early)
            return Answer(*early)
        clock = asyncio.get_running_loop().time
        begun = clock()
        deadline = begun + route.upstream.longest + _MARGIN
        shared = shared_key(digest, envelope.fingerprint)
        broken = False
        for key in (shared, f"{shared}.{envelope.nonce}"):
            wait = max(0.0, begun + route.rule.wait - clock())
            try:
                told = await self._asked(digest, key, envelope, wait, deadline, admitted.seen)
            except Broken:
                broken = True
                continue
            except (Unsent, NotServed) as error:
                if not broken:
                    raise
                raise StoreUnavailable("Restate ended the call without an answer") from error
            if isinstance(told, Response):
                self._note(admitted, envelope, told)
                return Answer(*told)
            if self._holds(told, envelope):
                return self._answer(told, admitted, digest, envelope, operation)
            # The record is what counts; this was only Restate's memory of an answer.
            self._begin(self._way.holding.forget(digest, shared))
        raise StoreUnavailable("Restate ended the call without an answer")

    def _early(self, digest: bytes, envelope: Envelope, wait: float) -> Response | None:
        """The answer while this process asks the service behind for the same key."""
        running = self._looks.here(digest)
        if running is None:
            return None
        if running.fingerprint != envelope.fingerprint:
            return problem("idempotency-key-reused")
        if wait:
            return None
        return problem("request-in-progress", operation_id=operation_id_of(running.number))

    async def _asked(
        self,
        digest: bytes,
        key: str,
        envelope: Envelope,
        wait: float,
        deadline: float,
        seen: Seen | None,
    ) -> Reply | Response:
        loop = asyncio.get_running_loop()
        timeout = max(SOON, deadline - loop.time())
        # A little longer than it is waited for: who waits finds out more than that it is too late.
        calling = self._way.calling.call(digest, key, envelope, timeout + _MARGIN, seen)
        reply = loop.create_task(calling)
        try:
            await asyncio.wait((reply,), timeout=SOON)
            if reply.done():
                return reply.result()
            call = Call(digest, key, envelope, reply)
            return await Awaiting(self._looks, call, wait, deadline).told()
        except asyncio.CancelledError:
            # Restate goes on with it.
            go_on()
            return problem("request-in-progress")
        finally:
            reply.cancel()

    def _holds(self, reply: Reply, envelope: Envelope) -> bool:
        """Whether it is an answer to this caller: to his own call, or to every caller."""
        if reply.nonce == envelope.nonce:
            return True
        return reply.outcome is not None and reply.expires_at > self._ledger.clock.now()

    def _answer(
        self,
        reply: Reply,
        admitted: Admitted,
        digest: bytes,
        envelope: Envelope,
        operation: Operation,
    ) -> Answer | None:
        match reply.kind:
            case "mismatch":
                answer = problem("idempotency-key-reused")
                self._note(admitted, envelope, answer)
                return Answer(*answer)
            case "claimed":
                return None
            case "elsewhere":
                self._elsewhere_until = self._ledger.clock.steady() + int(_ELSEWHERE * 1000)
                return None
            case _:
                pass
        if reply.kind == "replay" or reply.nonce != envelope.nonce:
            record = reply.record(operation)
            if admitted.seen is not None:
                note_replay(self._ledger, admitted.seen, record)
            return Answer(*replay_of(record))
        if reply.outcome is None or reply.outcome.kind is Kind.UNKEPT:
            # Nobody else is to have this answer.
            shared = shared_key(digest, envelope.fingerprint)
            self._begin(self._way.holding.forget(digest, shared))
        if admitted.seen is not None:
            admitted.seen.operation = envelope.number
        return self._first(reply, admitted.route, envelope)

    def _first(self, reply: Reply, route: EdgeRoute, envelope: Envelope) -> Answer:
        if reply.first is None:
            # The next one goes another way, which can hand on anything.
            self._carried.discard(id(route))
            return self._streamed(envelope)
        status, headers, body, sealed = reply.first
        if body is None:
            assert reply.outcome is not None
            body = reply.outcome.body
        return Answer(status, headers + unseal(sealed, envelope.secret), body)

    def _streamed(self, envelope: Envelope) -> Answer:
        operation_id = operation_id_of(envelope.number)
        answer = self._way.handing.take(envelope.nonce)
        if answer is None:
            return Answer(*problem("outcome-not-kept", operation_id=operation_id))
        marks = first_marks(operation_id, stored=False)
        return answer._replace(headers=(*answer.headers, *marks))

    def _note(self, admitted: Admitted, envelope: Envelope, told: Response) -> None:
        """Of a request that is not run, by what its caller is told."""
        if told.status not in _NOT_RUN:
            return
        event, way = _NOT_RUN[told.status]
        self._ledger.observe(event, envelope.endpoint, envelope.namespace)
        if admitted.seen is not None:
            admitted.seen.way = way

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Beside everything else, and as good as not at all when it fails."""
        if len(self._beside) >= _MOST_BESIDE:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(_quietly(work))
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)


def _is_carried(route: EdgeRoute) -> bool:
    """Whether its requests may be made again by Restate itself when a process dies, and its answers
    are such as an envelope carries."""
    rule = route.rule
    small = rule.max_stored_body <= LARGEST_ANSWER and not rule.store_events
    if route.upstream is None or isinstance(route.upstream, ServiceUpstream):
        return False
    return rule.takeover == "rerun" and small


async def _quietly(work: Coroutine[Any, Any, None]) -> None:
    with suppress(OnceKeyError):
        await work
