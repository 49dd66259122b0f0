"""Decisions, told to whoever observes: in one place, whoever asked for them."""

from __future__ import annotations

from typing import Any

from oncekey.core.decision import Busy, Decision, Mismatch, Proceed, Replay, Unknown
from oncekey.core.events import Observer, Seen, Way
from oncekey.core.model import Kind, Operation, Outcome, State

_TOLD: dict[type[Any], tuple[str, Way]] = {
    Proceed: ("proceed", "new"),
    Replay: ("replay", "replay"),
    Busy: ("busy", "conflict"),
    Mismatch: ("mismatch", "mismatch"),
    Unknown: ("unknown", "refused"),
}
_NOT_KEPT = 409


def tell_decision(
    observe: Observer, operation: Operation, decision: Decision, seen: Seen | None = None
) -> None:
    """Of the request that was `seen`, if it is one."""
    event, way = _TOLD[type(decision)]
    namespace, endpoint = operation.ref.scope
    if seen is not None:
        endpoint = seen.endpoint
        seen.way = way
        # Of a mismatch nothing may be shown: it is another request's.
        if way != "mismatch":
            seen.operation = decision[0].id
        if seen.span is not None:
            seen.span.decided(decision)
    detail = replayed_status(decision.record.outcome) if isinstance(decision, Replay) else ""
    observe(event, endpoint, namespace, detail)


def replayed_status(outcome: Outcome | None) -> str | int:
    """What a replay of it answers."""
    assert outcome is not None
    match outcome.kind:
        case Kind.RESPONSE:
            return outcome.status
        case Kind.UNKEPT:
            return _NOT_KEPT
        case _:
            return "failed" if outcome.state is State.FAILED else "succeeded"
