"""Walk 3: identity → policy → rewrite → ledger → upstream → conclude → answer.

Whoever serves asks in two steps: `admit` needs only the head of a request, `forward` its body.
"""

from __future__ import annotations

from collections.abc import AsyncIterable
from typing import NamedTuple

from oncekey.core.claim import Claim
from oncekey.core.decision import Proceed, Replay
from oncekey.core.errors import (
    InvalidInput,
    LedgerClosed,
    OnceKeyError,
    StoreError,
    UpstreamError,
    UpstreamUncertain,
    UpstreamUnreachable,
)
from oncekey.core.events import Seen
from oncekey.core.ledger import Ledger
from oncekey.core.model import Headers, Ref, make
from oncekey.core.scope import Scope
from oncekey.edge.asked import Answer, Asked, Pairs
from oncekey.edge.cleaning import to_upstream
from oncekey.edge.concluding import Concluding
from oncekey.edge.decide import Pass, Protect, Refuse, decide, namespace_at
from oncekey.edge.identity.identities import Identities, Known
from oncekey.edge.policy import EdgeRoute, Table
from oncekey.edge.reading import RequestCut
from oncekey.edge.sending import Listening, Listens, as_it_comes
from oncekey.edge.telling import handling, note_replay, note_verdict, tell_unkeyed
from oncekey.edge.troubles import Troubles
from oncekey.wire.answer import way_of
from oncekey.wire.body import Body
from oncekey.wire.exchange import Request, operation_of, response_of
from oncekey.wire.headers import KEY, Lines, lines_of
from oncekey.wire.identity import Identity
from oncekey.wire.memo import LONGEST_BODY, Memo, Remembered
from oncekey.wire.problem import Response, problem, problem_of

Whole = bytes | Body
ANONYMOUS = Known(Identity(), "t-default:_tenant:client:anonymous")


class Admitted(NamedTuple):
    """A request that is let in, and how."""

    route: EdgeRoute
    verdict: Pass | Protect
    known: Known
    lines: Lines
    seen: Seen | None = None
    """For those who watch, if there are any."""


class Proxy:
    def __init__(self, table: Table, identities: Identities, ledger: Ledger) -> None:
        self.table = table
        self.identities = identities
        self._ledger = ledger
        self.watch = ledger.watch
        self.observe = None if ledger.watch is None else ledger.observe
        """For whoever answers without this proxy."""
        self._memo = Memo()
        self._troubles = Troubles(ledger.clock.steady)

    # -- the head of a request -----------------------------------------------------------

    def see(self, asked: Asked, route: EdgeRoute, began: float | None = None) -> Seen | None:
        """The request, for those who watch; it ends where it is answered."""
        watch = self.watch
        if watch is None:
            return None
        seen = watch.begin(route.place(asked.method), began)
        seen.policy = route.policy
        # Until it is let in.
        seen.way = "refused"
        if watch.tracing is not None:
            watch.tracing.begin(seen, asked.headers)
        return seen

    async def admit(
        self, asked: Asked, route: EdgeRoute, seen: Seen | None = None
    ) -> Admitted | Response:
        """Let it in, or the answer that refuses it. Nothing is run and nothing is read on."""
        known = self.identities.recall(asked.headers, asked.peer)
        if known is None:
            found = await self.identify(asked, anonymous=route.anonymous)
            if isinstance(found, Response):
                return found
            known = found
        admitted = self.admit_known(asked, route, known)
        if seen is None:
            return admitted
        if isinstance(admitted, Response):
            seen.namespace = namespace_at(route, known)
            return admitted
        note_verdict(seen, admitted.verdict)
        return admitted._replace(seen=seen)

    def see_admitted(self, asked: Asked, admitted: Admitted, began: float) -> Admitted:
        """The same for a request that is let in already."""
        seen = self.see(asked, admitted.route, began)
        if seen is None:
            return admitted
        note_verdict(seen, admitted.verdict)
        route, verdict, known, lines, _ = admitted
        return make(Admitted, (route, verdict, known, lines, seen))

    def see_refused(
        self, asked: Asked, route: EdgeRoute, known: Known, began: float
    ) -> Seen | None:
        seen = self.see(asked, route, began)
        if seen is not None:
            seen.namespace = namespace_at(route, known)
        return seen

    def admit_known(self, asked: Asked, route: EdgeRoute, known: Known) -> Admitted | Response:
        if (known.role == "admin") != (route.level == "platform"):
            return problem("unauthorized")
        again = asked.again
        lines = lines_of(asked.headers) if again is None else again[0].lines(again[1])
        verdict = decide(route, known, lines.keys)
        if type(verdict) is not Protect:
            namespace = namespace_at(route, known)
            tell_unkeyed(self._ledger.observe, route, asked.method, lines.keys, namespace)
            if isinstance(verdict, Refuse):
                return verdict.response
        return make(Admitted, (route, verdict, known, lines, None))

    async def identify(self, asked: Asked, *, anonymous: bool = False) -> Known | Response:
        try:
            known = await self.identities.identify(asked.headers, asked.peer)
        except OnceKeyError as error:
            self.tell(error, asked)
            return problem_of(error)
        if known is not None:
            return known
        return ANONYMOUS if anonymous else problem("unauthorized")

    def tell(self, error: OnceKeyError, asked: Asked) -> None:
        """Operators are told why; callers only that it is so."""
        self._troubles.tell(error.code, str(error), asked.peer)

    # -- its body, and its answer --------------------------------------------------------

    async def forward(
        self, asked: Asked, admitted: Admitted, body: Whole | AsyncIterable[bytes]
    ) -> Answer:
        verdict = admitted.verdict
        if isinstance(verdict, Pass):
            return await self._pass(asked, admitted, None, body)
        if isinstance(body, bytes):
            known = self.replay(asked, admitted, body)
            if known is not None:
                return Answer(*known)
        assert isinstance(body, bytes | Body)
        return await self.protect(asked, admitted, verdict, body)

    def replay(
        self, asked: Asked, admitted: Admitted, body: bytes, began: float = 0.0
    ) -> Response | None:
        """The answer to a request that was answered before, to the byte, without waiting. `began`
        is when it came, if it is not seen by anybody so far."""
        verdict = admitted.verdict
        if isinstance(verdict, Pass):
            return None
        key = self._memo_key(asked, admitted, verdict, body)
        known = self._memo.get(key)
        if known is None or not self._ledger.remembers(known.digest, known.record):
            return None
        watch, record = self.watch, known.record
        if watch is not None:
            namespace, _, key = verdict
            if admitted.seen is None:
                route, status = admitted.route, known.response.status
                place = route.place(asked.method)
                watch.replayed(place, namespace, key, record, status, began, route.policy)
            else:
                self._ledger.observe("key-present", admitted.seen.endpoint, namespace, "A")
                note_replay(self._ledger, admitted.seen, record)
        response: Response = known.response
        return response

    async def _pass(
        self,
        asked: Asked,
        admitted: Admitted,
        key: str | None,
        body: Whole | AsyncIterable[bytes],
    ) -> Answer:
        try:
            return await self._asked_behind(asked, admitted, key, body, Listening(as_it_comes))
        except (UpstreamError, InvalidInput) as error:
            self.tell(error, asked)
            cut = isinstance(error.__cause__, RequestCut)
            return Answer(*(problem("request-timeout") if cut else problem_of(error)))

    async def _pass_unprotected(
        self, asked: Asked, admitted: Admitted, verdict: Protect, body: Whole
    ) -> Answer:
        """The ledger is away, and the route fails open."""
        place = admitted.route.place(asked.method)
        self._ledger.observe("unprotected", place, verdict.namespace)
        if admitted.seen is not None:
            admitted.seen.way = "passed"
        return await self._pass(asked, admitted, verdict.key, body)

    def pass_on(self, asked: Asked, admitted: Admitted, body: bytes, listening: Listens) -> None:
        """Forward without waiting; whoever listens is told of the answer."""
        self._ask(asked, admitted, None, body, listening)

    async def protect(
        self, asked: Asked, admitted: Admitted, verdict: Protect, body: Whole
    ) -> Answer:
        """Run it once for its key; for a request that `replay` has no answer to."""
        route, rule, seen = admitted.route, admitted.route.rule, admitted.seen
        place = route.place(asked.method)
        self._ledger.observe("key-present", place, verdict.namespace, "A")
        if len(body) > rule.max_request_body:
            _refused(seen)
            return Answer(*problem("request-too-large"))
        lines = admitted.lines
        asks = (asked.method, asked.raw_path, asked.query, lines.content_type, body)
        request, scope = make(Request, asks), make(Scope, (verdict.namespace, place))
        operation = operation_of(request, verdict.raw, rule, scope, lines.request_id)
        try:
            decision = await self._ledger.abegin(
                operation, wait=rule.wait, recover=rule.recover, seen=seen
            )
        except (StoreError, LedgerClosed) as error:
            if rule.fail_open and isinstance(error, StoreError):
                return await self._pass_unprotected(asked, admitted, verdict, body)
            return Answer(*problem_of(error))
        if isinstance(decision, Proceed):
            return await self._run(asked, admitted, verdict, body, decision.claim)
        if isinstance(decision, Replay) and isinstance(body, bytes) and len(body) <= LONGEST_BODY:
            return Answer(*self._remember(asked, admitted, verdict, body, operation.ref, decision))
        return Answer(*response_of(decision))

    async def _run(
        self, asked: Asked, admitted: Admitted, verdict: Protect, body: Whole, claim: Claim
    ) -> Answer:
        """The claim is ours: ask the service behind, keep its answer, then let it out."""
        rule = admitted.route.rule

        def gathers(_: int, headers: Headers | Pairs) -> int:
            return 0 if way_of(headers, rule) in {"stream", "tee"} else rule.max_stored_body

        concluding = Concluding(self._ledger, admitted.route, claim)
        listening = Listening(gathers)
        try:
            with handling(admitted.seen):
                answer = await self._asked_behind(asked, admitted, verdict.key, body, listening)
        except (UpstreamUnreachable, InvalidInput) as error:
            self.tell(error, asked)
            return await concluding.not_sent(error)
        except UpstreamUncertain as error:
            self.tell(error, asked)
            return await concluding.uncertain(error)
        except BaseException:
            # Cut off in the middle: nobody knows how far it came, so it ends as a crash would.
            claim.abandon()
            raise
        return await concluding.answered(answer)

    async def _asked_behind(
        self,
        asked: Asked,
        admitted: Admitted,
        key: str | None,
        body: Whole | AsyncIterable[bytes],
        listening: Listening,
    ) -> Answer:
        self._ask(asked, admitted, key, body, listening)
        status, headers, beginning, rest = await listening.answer()
        return make(Answer, (status, admitted.route.cleaned(tuple(headers)), beginning, rest))

    def _ask(
        self,
        asked: Asked,
        admitted: Admitted,
        key: str | None,
        body: Whole | AsyncIterable[bytes],
        listening: Listens,
    ) -> None:
        route, namespace = admitted.route, admitted.verdict.namespace
        method = asked.method.encode()
        if admitted.seen is not None and admitted.seen.span is not None:
            lines = admitted.seen.span.sent_on(asked.headers)
            asked = asked._replace(headers=lines, again=None)
        if asked.again is None or not isinstance(body, bytes):
            lines = to_upstream(asked, namespace, key, self.identities.gateway)
            content = body.chunks() if isinstance(body, Body) else body
            length = None if isinstance(body, bytes) else _length_of(asked, body)
            listening.ask = route.upstream.ask(
                method, asked.target, lines, content, listening, length=length
            )
            return
        repeat, values = asked.again
        fresh = repeat.fresh(values)
        if key is not None:
            fresh.append((KEY, key.encode("ascii")))
        start = repeat.starts.get(namespace)
        if start is None:
            lines = to_upstream(repeat.same, namespace, None, self.identities.gateway)
            start = route.upstream.start(method, asked.target, lines)
            repeat.starts[namespace] = start
        listening.ask = route.upstream.ask_from(method, start, fresh, body, listening)

    # -- requests that were answered before ----------------------------------------------

    def _memo_key(self, asked: Asked, admitted: Admitted, verdict: Protect, body: bytes) -> object:
        return (
            verdict.key,
            admitted.route.path,
            asked.method,
            asked.raw_path,
            asked.query,
            admitted.lines.content_type,
            body,
        )

    def _remember(
        self,
        asked: Asked,
        admitted: Admitted,
        verdict: Protect,
        body: bytes,
        ref: Ref,
        replay: Replay,
    ) -> Response:
        request = self._memo_key(asked, admitted, verdict, body)
        known = self._memo.get(request)
        if known is None or known.record is not replay.record:
            known = Remembered(ref.digest, replay.record, response_of(replay))
            self._memo.put(request, known)
        return known.response


def _refused(seen: Seen | None) -> None:
    if seen is not None:
        seen.way = "refused"


def _length_of(asked: Asked, body: Body | AsyncIterable[bytes]) -> int | None:
    """Of a body that comes in pieces, when it is known: some services read nothing without it."""
    if isinstance(body, Body):
        return body.size
    return next((int(value) for name, value in asked.headers if name == b"content-length"), None)
