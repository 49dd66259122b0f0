"""The audit feed, as steps of named SQL."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from oncekey.core.audit import AuditEntry, KeepAudit, ListAudit
from oncekey.core.looking import Looked
from oncekey.stores.requests import Row, Setting, Step, Steps
from oncekey.stores.windows import Span, look_through

Answers = Generator[Step, list[Row], Any]


def _keep(keep: KeepAudit, _: Setting) -> Answers:
    rows = yield "keep_audit", keep.entry._asdict()
    if rows:
        return True
    # There to the letter: a commit we were unsure of went through.
    found = yield "find_audit", {"id": keep.entry.id}
    return bool(found) and AuditEntry(*found[0]) == keep.entry


def _list(query: ListAudit, _: Setting) -> Answers:
    values = {"actor": query.actor, "action": query.action, "target": query.target}
    picks = any(value is not None for value in values.values())
    name = "list_audit"
    if query.tenant is not None:
        # A query of its own: only so does every plan of it use the tenant's index.
        name, values = "list_audit_of", {**values, "tenant": query.tenant}
    span = Span(name, f"{name}_edge" if picks else None, values)
    rows = yield from look_through([span], query.before, query.limit, query.look)
    return Looked((AuditEntry(*row) for row in rows), rows.to)


PLANS: dict[type, Callable[[Any, Setting], Steps]] = {KeepAudit: _keep, ListAudit: _list}
READS: frozenset[type] = frozenset({ListAudit})
