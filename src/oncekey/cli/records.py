"""Records of the ledger as people and programs see them, and how one is found."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

from oncekey.api.admin.records import shape_of_key
from oncekey.cli.output import looking_back
from oncekey.cli.text import moment, preview_of
from oncekey.core.identifier import millisecond_of
from oncekey.core.ledger import Ledger
from oncekey.core.looking import LOOK
from oncekey.core.model import Outcome, Record, State, number_of
from oncekey.core.ports import Found, Query
from oncekey.durable.shapes import Shape
from oncekey.wire.exchange import shown

Keep = Callable[[Record], bool]

STATES = {
    "in-progress": State.IN_PROGRESS,
    "succeeded": State.SUCCEEDED,
    "failed": State.FAILED,
    "promise": State.PROMISE,
}
NAMES = {state: name for name, state in STATES.items()}

_PAGE = 100


def scan(ledger: Ledger, query: Query, keep: Keep) -> Iterator[Found]:
    """Every record of the query that `keep` wants, newest first, a page at a time; who waits at a
    terminal sees how far back it has come."""
    query = query._replace(limit=_PAGE, look=LOOK)
    with looking_back() as show:
        while True:
            page = ledger.list(query)
            yield from (found for found in page if keep(found.record))
            before = page.to
            if before is None and len(page) == _PAGE:
                before = page[-1].record.id
            if before is None:
                return
            show(millisecond_of(before))
            query = query._replace(before=before)


def find_by_id(ledger: Ledger, operation_id: str) -> Found | None:
    number = number_of(operation_id)
    return None if number is None else ledger.look(number)


def state_of(found: Found) -> str:
    name = NAMES[found.record.state]
    return f"{name} (lapsed)" if found.lapsed else name


def row_of(found: Found) -> tuple[str, ...]:
    record = found.record
    status = str(record.outcome.status or "") if record.outcome else ""
    return (
        record.operation_id,
        record.ref.key,
        record.ref.scope.endpoint,
        record.ref.scope.namespace,
        state_of(found),
        status,
        moment(record.created_at),
    )


COLUMNS = ("OPERATION", "KEY", "ENDPOINT", "NAMESPACE", "STATE", "STATUS", "CREATED")


def pairs_of(found: Found) -> list[tuple[str, str]]:
    """What there is to say about one record, its outcome aside."""
    record = found.record
    return [
        ("operation", record.operation_id),
        ("key", record.ref.key),
        ("endpoint", record.ref.scope.endpoint),
        ("namespace", record.ref.scope.namespace),
        ("state", _told_state(found)),
        ("attempts", f"{record.attempts} (fence {record.fence})"),
        ("request", record.request_id),
        ("stands for", f"{record.link.kind} {record.link.id}" if record.link else ""),
        ("retention", record.retention),
        ("created", moment(record.created_at, zone=True)),
        ("completed", moment(record.completed_at, zone=True)),
        ("expires", moment(record.expires_at, zone=True) if record.outcome else ""),
    ]


def outcome_lines(outcome: Outcome) -> list[str]:
    """The outcome, its headers and the first lines of its body; not yet escaped, but the body."""
    kind = outcome.kind.name.lower()
    status = f" {outcome.status}" if outcome.status else ""
    headers = [
        f"{name.decode('latin-1')}: {value.decode('latin-1')}" for name, value in shown(outcome)
    ]
    return [f"{kind}{status}, {len(outcome.body)} bytes", *headers, "", *preview_of(outcome.body)]


def plain_of(found: Found, *, whole: bool) -> Shape:
    """A record as admins see it in the API, but its state in the word of --state; `whole` with
    headers and body."""
    record = found.record
    plain = {**shape_of_key(found), "state": NAMES[record.state], "fence": record.fence}
    if whole:
        plain["outcome"] = _plain_outcome(record.outcome) if record.outcome else None
    return plain


def _told_state(found: Found) -> str:
    if found.lapsed:
        return "in-progress, its process is gone: the next request with this key decides"
    if found.record.state is State.IN_PROGRESS:
        return "in-progress, its process is alive"
    return NAMES[found.record.state]


def _plain_outcome(outcome: Outcome) -> dict[str, Any]:
    headers = [[name.decode("latin-1"), value.decode("latin-1")] for name, value in shown(outcome)]
    plain = {
        "kind": outcome.kind.name.lower(),
        "status": outcome.status or None,
        "headers": headers,
    }
    try:
        return {**plain, "body": outcome.body.decode()}
    except UnicodeDecodeError:
        return {**plain, "body_base64": base64.b64encode(outcome.body).decode()}
