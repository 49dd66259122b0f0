"""A request in, an operation out; a decision in, a response out. No sockets, no framework."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

from oncekey.core.decision import Busy, Mismatch, Replay, Unknown
from oncekey.core.errors import TerminalError
from oncekey.core.events import TRACEPARENT
from oncekey.core.model import Headers, Kind, Operation, Outcome, Record, Ref, make
from oncekey.core.scope import Scope
from oncekey.wire.body import Body
from oncekey.wire.headers import kept, replay_marks, request_id_in
from oncekey.wire.problem import Response, problem
from oncekey.wire.rule import Rule


class Request(NamedTuple):
    """What of a request makes it this operation."""

    method: str
    path: bytes
    query: bytes
    content_type: bytes
    body: bytes | Body


def operation_of(
    request: Request, key: str, rule: Rule, scope: Scope, request_id: bytes = b""
) -> Operation:
    """`scope` says whose key it is and what it belongs to."""
    method, path, query, content_type, body = request
    content = body if isinstance(body, bytes) else body.content
    fingerprint = rule.fingerprint.of(method, path, query, content_type, content)
    shown_id = request_id_in(request_id) if request_id else ""
    ref = make(Ref, (scope, key))
    return make(Operation, (ref, fingerprint, shown_id, rule.retention, rule.takeover))


def endpoint_of(method: str, path: str) -> str:
    """What a key belongs to: one method of one path or path pattern."""
    if not path.isprintable():
        # No store need hold what no screen can show, and some cannot.
        path = quote(path, errors="surrogatepass")
    return f"{method} {path}"


def outcome_of(status: int, headers: Headers, body: bytes, rule: Rule) -> Outcome:
    """What is kept of an answer that was collected whole."""
    if len(body) > rule.max_stored_body:
        return Outcome(Kind.UNKEPT, status)
    return Outcome(Kind.RESPONSE, status, kept(headers, rule), body)


def terminal_outcome(error: TerminalError) -> Outcome:
    """A handler's final failure, as the answer everyone gets."""
    answer = problem("terminal-error", str(error), status=error.status)
    return Outcome(Kind.RESPONSE, answer.status, answer.headers, answer.body)


def response_of(decision: Replay | Busy | Mismatch | Unknown) -> Response:
    """The answer to a request that is not run."""
    match decision:
        case Replay(record):
            return replay_of(record)
        case Busy(record):
            return problem("request-in-progress", operation_id=record.operation_id)
        case Mismatch():
            return problem("idempotency-key-reused")
        case Unknown(record):
            return problem("outcome-unknown", operation_id=record.operation_id)


def shown(outcome: Outcome) -> Headers:
    """The headers of an answer as they were, without what is kept beside them."""
    headers = outcome.headers
    return headers[:-1] if headers and headers[-1][0] == TRACEPARENT else headers


def replay_of(record: Record) -> Response:
    """The stored answer, byte for byte, with the marks of a replay."""
    outcome = record.outcome
    assert outcome is not None
    match outcome.kind:
        case Kind.RESPONSE:
            return Response(outcome.status, shown(outcome) + replay_marks(record), outcome.body)
        case Kind.UNKEPT:
            return problem("outcome-not-kept", operation_id=record.operation_id)
        case Kind.ERROR:
            detail, status = outcome.body.decode(errors="replace"), outcome.status
            return problem(
                "terminal-error", detail, operation_id=record.operation_id, status=status
            )
        case Kind.VALUE:
            length = str(len(outcome.body)).encode()
            headers = ((b"content-type", b"application/json"), (b"content-length", length))
            return Response(200, headers + replay_marks(record), outcome.body)
