"""What a provider hears. Its rules are not those of clients: what is to come again must never be a
4xx, and what is over is a 200."""

from __future__ import annotations

from oncekey.core.errors import IdentifierMissing, OnceKeyError
from oncekey.core.model import Kind, Outcome, Record, State
from oncekey.durable.shapes import Shape, json_of
from oncekey.webhooks.acting import Failed, Postponed
from oncekey.wire.exchange import replay_of, shown
from oncekey.wire.headers import replay_marks
from oncekey.wire.problem import Response, outcome_unknown_behind, problem, problem_of
from oncekey.wire.replies import ok, to_provider

# Being too late is no fault of the provider's, and nothing that trying again could change. Its
# status for clients, 410, would make some providers give the webhook up.
_TOO_LATE = "promise-over"


def outcome_of(response: Response) -> Outcome:
    return Outcome(Kind.RESPONSE, *response)


def done(shape: Shape) -> Outcome:
    return outcome_of(ok(json_of(shape)))


def failed(ending: Failed) -> Outcome:
    if ending.code == _TOO_LATE:
        shape = {"status": "ignored", "reason": ending.code, "detail": ending.detail}
        return outcome_of(ok(json_of(shape)))
    return outcome_of(problem("delivery-failed", ending.detail, reason=ending.code))


def unknown() -> Outcome:
    return outcome_of(outcome_unknown_behind(to_provider=True))


def first(outcome: Outcome, operation_id: str, *, final: bool = True) -> Response:
    """Of an outcome that was just come to."""
    answer = _heard(outcome, final=final)
    mark = (b"x-operation-id", operation_id.encode())
    return answer._replace(headers=(*answer.headers, mark))


def again(record: Record) -> Response:
    """Of an outcome that was kept."""
    assert record.outcome is not None
    if record.outcome.kind is Kind.UNKEPT:
        answer = _heard(record.outcome)
        return answer._replace(headers=answer.headers + replay_marks(record))
    answer = replay_of(record)
    return answer._replace(status=to_provider(answer.status, final=True))


def postponed(ending: Postponed, operation_id: str) -> Response:
    """Why is told to operators only, in the log of deliveries."""
    if ending.code == "upstream-unreachable":
        return problem(ending.code, operation_id=operation_id)
    return problem("delivery-postponed", operation_id=operation_id, reason=ending.code)


def repeated() -> Response:
    return ok(json_of({"status": "ignored", "reason": "repeated-body"}))


def refused(error: OnceKeyError) -> Response:
    """To what could not be verified, and to what was but has no name."""
    if isinstance(error, IdentifierMissing):
        return problem(error.code, str(error))
    return problem_of(error)


def _heard(outcome: Outcome, *, final: bool = True) -> Response:
    status = to_provider(outcome.status, final=final)
    if outcome.kind is Kind.UNKEPT:
        # More than is kept of an answer, and more than any provider reads.
        word = "failed" if outcome.state is State.FAILED else "done"
        return ok(json_of({"status": word}))._replace(status=status)
    return Response(status, shown(outcome), outcome.body)
