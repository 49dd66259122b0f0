"""The audit feed: who did what to what, and when. Nothing in it is ever changed."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from oncekey.core.errors import InvalidInput
from oncekey.core.identifier import number_in, text_of
from oncekey.core.ledger import Ledger
from oncekey.core.looking import Looked
from oncekey.core.scope import namespace_of
from oncekey.core.steps import Steps

MAX_DETAILS = 4000
PREFIX = "au_"
_MAX_TEXT = 300


class AuditEntry(NamedTuple):
    """Entries sort by their number as they came."""

    id: int
    at: int
    actor: str
    """`cli:ann`, `admin:ak_…`."""
    action: str
    """`webhook.create`."""
    target: str
    tenant: str | None
    details: str
    """A JSON object."""

    @property
    def public_id(self) -> str:
        return text_of(PREFIX, self.id)

    @property
    def facts(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.details)
        return found


class KeepAudit(NamedTuple):
    """Answer: False when the number is another's; then nothing is kept."""

    entry: AuditEntry


class ListAudit(NamedTuple):
    """A page, newest first, of numbers below `before`; with `look` only so many are looked at.
    Answer: Looked[AuditEntry]."""

    tenant: str | None = None
    before: int | None = None
    limit: int = 100
    actor: str | None = None
    action: str | None = None
    target: str | None = None
    look: int | None = None


class Audit:
    """`record` is async, `write` the same for blocking code. Details never hold a secret."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def record(
        self, actor: str, action: str, target: str, *, tenant: str | None = None, **details: Any
    ) -> AuditEntry:
        return await self._ledger.arun(self._record(actor, action, target, tenant, details))

    def write(
        self, actor: str, action: str, target: str, *, tenant: str | None = None, **details: Any
    ) -> AuditEntry:
        return self._ledger.run(self._record(actor, action, target, tenant, details))

    async def list(
        self,
        tenant: str | None = None,
        *,
        before: int | None = None,
        limit: int = 100,
        actor: str | None = None,
        action: str | None = None,
        target: str | None = None,
        look: int | None = None,
    ) -> Looked[AuditEntry]:
        """With `look` only so many are looked at."""
        if tenant is not None:
            namespace_of(tenant)
        found: Looked[AuditEntry] = await self._ledger.aread(
            ListAudit(tenant, before, limit, actor, action, target, look)
        )
        return found

    def _record(
        self, actor: str, action: str, target: str, tenant: str | None, details: dict[str, Any]
    ) -> Steps[AuditEntry]:
        told = _details_of(details)
        while True:
            entry = AuditEntry(
                self._ledger.draw(),
                self._ledger.clock.now(),
                _plain(actor),
                _plain(action),
                _plain(target),
                tenant,
                told,
            )
            if (yield KeepAudit(entry)):
                return entry


def entry_number(public_id: str) -> int | None:
    """None for anything that is not the id of an entry."""
    return number_in(PREFIX, public_id)


def _details_of(details: dict[str, Any]) -> str:
    told = json.dumps({name: _cut(value) for name, value in details.items() if value is not None})
    if len(told) > MAX_DETAILS:
        raise InvalidInput(f"details of an audit entry are at most {MAX_DETAILS} characters long")
    return told


def _cut(value: Any) -> Any:
    """What was done is done: a long text is no reason to leave it out of the feed."""
    is_long = isinstance(value, str) and len(value) > _MAX_TEXT
    return f"{value[:_MAX_TEXT]}…" if is_long else value


def _plain(text: str) -> str:
    """Of bounded length, and without what drives a terminal or is no text to a database."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text[:_MAX_TEXT])
