"""Traces with OpenTelemetry: request → claim → handler → settle, and the runs of workflows.

Needs the extra `otel`. A replay has a link to the request whose answer it got, by a private line
that is stored among the headers of that answer, and never shown.
"""

from __future__ import annotations

import contextvars
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any

from opentelemetry import context, trace
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from oncekey.core.decision import Decision, Proceed, Replay
from oncekey.core.events import TRACEPARENT, Seen
from oncekey.core.model import Kind, Outcome, operation_id_of

_CARRIED = (b"traceparent", b"tracestate")
_PROPAGATOR = TraceContextTextMapPropagator()
_MOST_RESOLVERS = 1024
_BROKEN = 500


class Tracing:
    """`provider` is the application's own; without one, the one that it has set for all."""

    def __init__(self, provider: trace.TracerProvider | None = None) -> None:
        self._tracer = (provider or trace.get_tracer_provider()).get_tracer("oncekey")
        self._resolvers: OrderedDict[int, SpanContext] = OrderedDict()

    def begin(self, seen: Seen, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """A request: it goes on with the trace of its caller, if that has one."""
        parent = parent_in(headers)
        span = self._tracer.start_span(seen.endpoint, context=parent, kind=SpanKind.SERVER)
        seen.span = RequestSpan(self._tracer, span)

    def inside(self, execution: int) -> contextvars.Context:
        """For the task of a run: what its steps trace is in the trace of their workflow, and not in
        that of the request that has set it going."""
        found = contextvars.copy_context()
        found.run(context.attach, self._home_of(execution))
        return found

    def resolve(self, execution: int) -> None:
        """What is under way has given a workflow what it waits for: here, or in another process."""
        span = trace.get_current_span()
        found = span.get_span_context()
        if found.is_valid:
            span.add_link(context_of(execution), {"oncekey.execution": _shown(execution)})
            self._resolvers[execution] = found
            while len(self._resolvers) > _MOST_RESOLVERS:
                self._resolvers.popitem(last=False)

    def resume(self, execution: int, name: str) -> Any:
        """The span of a run, from when it goes on until it waits again, or is over: `end()` it."""
        resolver = self._resolvers.pop(execution, None)
        return self._tracer.start_span(
            f"resume {name}",
            context=self._home_of(execution),
            links=() if resolver is None else (Link(resolver),),
            attributes={"oncekey.execution": _shown(execution), "oncekey.workflow": name},
        )

    def _home_of(self, execution: int) -> context.Context:
        """The trace of a workflow, which is kept or not by what the sampler says of its id."""
        found = context_of(execution)
        sampler = getattr(self._tracer, "sampler", None)
        if sampler is not None:
            said = sampler.should_sample(context.Context(), found.trace_id, "resume")
            kept = TraceFlags.SAMPLED if said.decision.is_sampled() else TraceFlags.DEFAULT
            found = SpanContext(found.trace_id, found.span_id, True, TraceFlags(kept))
        return trace.set_span_in_context(trace.NonRecordingSpan(found), context.Context())


class RequestSpan:
    """The span of one request, and those inside it."""

    __slots__ = ("_handler", "_inside", "_settling", "_span", "_tracer")

    def __init__(self, tracer: trace.Tracer, span: trace.Span) -> None:
        self._tracer = tracer
        self._span = span
        self._inside = trace.set_span_in_context(span, context.Context())
        self._handler: trace.Span | None = None
        self._settling: trace.Span | None = None

    @property
    def trace_id(self) -> str:
        return trace.format_trace_id(self._span.get_span_context().trace_id)

    def beside(self) -> RequestSpan:
        """The same span, for one of several claims that are held side by side."""
        return RequestSpan(self._tracer, self._span)

    def start(self, name: str) -> trace.Span:
        """A part of it: `end()` it."""
        return self._tracer.start_span(name, context=self._inside)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """The same for a block, in which it is the current span."""
        span = self.start(name)
        token = context.attach(trace.set_span_in_context(span))
        try:
            yield
        finally:
            context.detach(token)
            span.end()

    @contextmanager
    def handling(self) -> Iterator[None]:
        """The application runs: what it traces is inside of it."""
        span = self._handler = self.start("handler")
        token = context.attach(trace.set_span_in_context(span))
        try:
            yield
        finally:
            context.detach(token)
            self._end_handler()

    def sent_on(self, headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """`headers` for the service behind, with the handler as what it belongs to."""
        span = self._handler or self._span
        lines = [pair for pair in headers if pair[0] not in _CARRIED]
        carrier: dict[str, str] = {}
        _PROPAGATOR.inject(carrier, trace.set_span_in_context(span))
        return lines + [(name.encode(), value.encode()) for name, value in carrier.items()]

    def decided(self, decision: Decision) -> None:
        if isinstance(decision, Proceed):
            decision.claim.span = self
        elif isinstance(decision, Replay):
            self.replays(decision.record.outcome)

    def replays(self, outcome: Outcome | None) -> None:
        """A link to the request that this is the answer of, if that was traced."""
        if outcome is None or not outcome.headers or outcome.headers[-1][0] != TRACEPARENT:
            return
        found = trace.get_current_span(parent_in([(b"traceparent", outcome.headers[-1][1])]))
        if found.get_span_context().is_valid:
            self._span.add_link(found.get_span_context(), {"oncekey.original": True})

    def settling(self, outcome: Outcome) -> Outcome:
        """The outcome as it is kept: with what a replay makes its link of."""
        self._end_handler()
        self._settling = self.start("settle")
        if outcome.kind is not Kind.RESPONSE:
            return outcome
        carrier: dict[str, str] = {}
        _PROPAGATOR.inject(carrier, self._inside)
        line = (TRACEPARENT, carrier.get("traceparent", "").encode())
        return outcome._replace(headers=(*outcome.headers, line))

    def settled(self) -> None:
        if self._settling is not None:
            self._settling.end()
            self._settling = None

    def end(self, seen: Seen, status: int) -> None:
        self._end_handler()
        self.settled()
        span = self._span
        span.set_attributes(_attributes_of(seen, status))
        if status >= _BROKEN or not status or seen.way == "failed":
            span.set_status(Status(StatusCode.ERROR))
        span.end()

    def _end_handler(self) -> None:
        if self._handler is not None:
            self._handler.end()
            self._handler = None


def _attributes_of(seen: Seen, status: int) -> dict[str, str | int | bool]:
    tenant, _, rest = seen.namespace.removeprefix("t-").partition(":")
    found: dict[str, str | int | bool] = {
        "http.route": seen.endpoint.partition(" ")[2] or seen.endpoint,
        "http.request.method": seen.endpoint.partition(" ")[0],
        "http.response.status_code": status,
        "oncekey.way": seen.way,
        "oncekey.cache_hit": seen.way == "replay",
    }
    more = {
        "oncekey.tenant": tenant,
        "oncekey.project": rest.partition(":")[0],
        "oncekey.case": seen.case,
        "oncekey.policy": seen.policy,
        "oncekey.source": seen.source,
        "oncekey.operation_id": operation_id_of(seen.operation) if seen.operation else "",
        "oncekey.restate_invocation_id": seen.invocation,
    }
    return found | {name: value for name, value in more.items() if value}


def parent_in(headers: Iterable[tuple[bytes, bytes]]) -> context.Context:
    """The context that a caller tells; an empty one where it tells none, or two."""
    told: dict[str, str] = {}
    for name, value in headers:
        if name in _CARRIED:
            if name.decode() in told:
                return context.Context()
            told[name.decode()] = value.decode("latin-1")
    return _PROPAGATOR.extract(told, context.Context())


def _shown(execution: int) -> str:
    """The digits of its id."""
    return f"{execution:016x}"


def context_of(execution: int) -> SpanContext:
    """The trace that a workflow lives in: the same in every process, and after every crash."""
    number = execution.to_bytes(8, "big")
    made = blake2b(number, digest_size=24, person=b"oncekey-trace").digest()
    return SpanContext(
        int.from_bytes(made[:16], "big"),
        int.from_bytes(made[16:], "big"),
        is_remote=True,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )
