"""Requests that Restate calls for: services behind are asked as the proxy asks them, on the loop of
the store, and what is kept of their answers is the same."""

from __future__ import annotations

from collections.abc import Iterable

from oncekey.core.errors import InvalidInput, UpstreamError, UpstreamUncertain, UpstreamUnreachable
from oncekey.core.events import TRACEPARENT
from oncekey.core.finality import is_final_status
from oncekey.core.ledger import Ledger
from oncekey.core.model import Headers, Kind, Outcome, operation_id_of
from oncekey.edge.asked import Answer, Pairs
from oncekey.edge.concluding import kept_of, outcome_of_uncertain
from oncekey.edge.handing import Handing
from oncekey.edge.policy import EdgeRoute, Table
from oncekey.edge.sending import Listening
from oncekey.edge.target import path_of
from oncekey.edge.troubles import Troubles
from oncekey.stores.restate.envelope import LARGEST_ANSWER, Envelope, First, Ran, seal
from oncekey.wire.answer import first_marks
from oncekey.wire.headers import kept
from oncekey.wire.problem import Response, problem, problem_of


class Performing:
    """`routes` have upstreams of their own: connections belong to one loop."""

    def __init__(self, routes: Iterable[EdgeRoute], ledger: Ledger) -> None:
        self._ledger = ledger
        self._table = Table(routes)
        self.handing = Handing()
        self._troubles = Troubles(ledger.clock.steady)

    def knows(self, envelope: Envelope) -> bool:
        """Whether the route that it names is the one that it fits: whatever reaches Restate can
        make envelopes."""
        route = self._route_of(envelope)
        if route is None or route.upstream is None:
            return False
        return route.place(envelope.method.decode("ascii")) == envelope.endpoint

    def _route_of(self, envelope: Envelope) -> EdgeRoute | None:
        path = path_of(envelope.target)
        return None if path is None else self._table.find(envelope.method.decode("ascii"), path)

    async def __call__(self, envelope: Envelope) -> Ran:
        route = self._route_of(envelope)
        assert route is not None
        operation_id = operation_id_of(envelope.number)
        try:
            answer = await self._asked(route, envelope)
        except (UpstreamUnreachable, InvalidInput) as error:
            self._tell(error)
            if isinstance(error, InvalidInput):
                return _refused(problem_of(error))
            return _refused(problem(error.code, operation_id=operation_id))
        except UpstreamUncertain as error:
            self._tell(error)
            self._ledger.observe("uncertain", envelope.endpoint, envelope.namespace)
            told = First(*problem(error.code, operation_id=operation_id))
            if route.uncertain == "refuse":
                return Ran(outcome_of_uncertain(operation_id), told)
            return Ran(None, told, doubtful=True)
        if answer.rest is not None:
            return await self._streamed(route, answer, envelope.nonce)
        return self._traced(_ran(route, answer, operation_id, envelope.secret), envelope)

    async def _asked(self, route: EdgeRoute, envelope: Envelope) -> Answer:
        listening = Listening(_gathers)
        listening.ask = route.upstream.ask(
            envelope.method, envelope.target, envelope.lines, envelope.body, listening
        )
        status, headers, body, rest = await listening.answer()
        return Answer(status, route.cleaned(tuple(headers)), body, rest)

    async def _streamed(self, route: EdgeRoute, answer: Answer, nonce: str) -> Ran:
        """Only a caller in this process can have it."""
        if answer.rest is not None and not self.handing.leave(nonce, answer):
            await answer.rest.aclose()
        final = is_final_status(answer.status, route.rule.store_server_errors)
        return Ran(Outcome(Kind.UNKEPT, answer.status) if final else None, None)

    def _traced(self, ran: Ran, envelope: Envelope) -> Ran:
        """With what a replay makes its link of: the span of whoever sent the envelope."""
        watch, outcome = self._ledger.watch, ran.outcome
        if watch is None or watch.tracing is None or outcome is None:
            return ran
        parent = dict(envelope.lines).get(b"traceparent")
        if parent is None or outcome.kind is not Kind.RESPONSE:
            return ran
        kept_with = (*outcome.headers, (TRACEPARENT, parent))
        return ran._replace(outcome=outcome._replace(headers=kept_with))

    def _tell(self, error: UpstreamError | InvalidInput) -> None:
        self._troubles.tell(error.code, str(error))


def _gathers(_: int, headers: Headers | Pairs) -> int:
    """An envelope carries what is too large to be kept as well, but no answer without end."""
    for name, value in headers:
        if name == b"content-type" and value.startswith(b"text/event-stream"):
            return 0
        if name == b"content-length" and value.isdigit() and int(value) > LARGEST_ANSWER:
            return 0
    return LARGEST_ANSWER


def _ran(route: EdgeRoute, answer: Answer, operation_id: str, secret: bytes) -> Ran:
    status, headers, body, _ = answer
    rule = route.rule
    outcome = kept_of(answer, rule)
    stored = outcome.kind is Kind.RESPONSE
    shown = outcome.headers if stored else kept(headers, rule)
    passing = () if len(shown) == len(headers) else tuple(p for p in headers if p not in shown)
    marks = first_marks(operation_id, stored=stored)
    final = is_final_status(status, rule.store_server_errors)
    same = None if final and stored else body
    first = First(status, shown + marks, same, seal(passing, secret))
    return Ran(outcome if final else None, first)


def _refused(answer: Response) -> Ran:
    return Ran(None, First(*answer))
