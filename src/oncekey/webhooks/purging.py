"""Keys that are forgotten, so that the next request with one runs. With a delivery goes what is
remembered of its body: the provider may send it again under another name."""

from __future__ import annotations

from oncekey.core.errors import InProgress
from oncekey.core.identifier import first_number
from oncekey.core.ledger import Ledger
from oncekey.core.model import Record, Ref
from oncekey.core.ports import Found, Query
from oncekey.webhooks.naming import BODY, is_delivery, name_digest

# A body is claimed right before its delivery, or when that is taken over; clocks may differ.
_MARGIN = 60_000
_PAGE = 50


def purge(ledger: Ledger, found: Found, *, force: bool = False) -> list[Ref]:
    """What was forgotten; nothing when it was gone already. `force` also purges what is running:
    what that one answers is then not kept. Raises `InProgress`."""
    if not force:
        check_free(found)
    refs = [*_bodies_of(ledger, found.record), found.record.ref]
    return [ref for ref in refs if ledger.purge(ref)]


def check_free(found: Found) -> None:
    """Raises `InProgress` for one that is being run: a retry would run beside it."""
    if is_held(found):
        shown = found.record.operation_id
        raise InProgress(f"{shown} is running; wait for it, or purge it with force")


def is_held(found: Found) -> bool:
    """In flight, in the hands of a process that is alive."""
    return found.record.outcome is None and not found.lapsed


def _bodies_of(ledger: Ledger, record: Record) -> list[Ref]:
    scope = record.ref.scope
    if not is_delivery(scope):
        return []
    name = name_digest(record.ref.key)
    ended = record.created_at if record.completed_at is None else record.completed_at
    query = Query(
        namespace=scope.namespace,
        endpoint=scope.endpoint + BODY,
        after=first_number(record.created_at - _MARGIN),
        before=first_number(ended + _MARGIN),
        limit=_PAGE,
    )
    while page := ledger.list(query):
        same = [each.record.ref for each in page if each.record.fingerprint == name]
        if same:
            return same
        query = query._replace(before=page[-1].record.id)
    return []
