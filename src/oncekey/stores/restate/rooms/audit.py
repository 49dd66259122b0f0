"""The room of the audit feed: a row for each entry."""

from __future__ import annotations

from oncekey.core.audit import AuditEntry, KeepAudit, ListAudit
from oncekey.stores.memory.audit import MemoryAudit
from oncekey.stores.restate.columns import is_same
from oncekey.stores.restate.link import Link
from oncekey.stores.restate.row import Room, Rows, Table

_TENANT = 2

AUDIT = Table(
    "audit",
    lambda kept: MemoryAudit(kept).answers(),
    changes=(KeepAudit,),
    id_of=lambda entry: entry.id,
    columns=lambda entry: (f"{entry.id:016x}", entry.tenant or ""),
)


class Audit:
    def __init__(self, link: Link) -> None:
        self._rows = Rows(link, AUDIT)

    def answers(self) -> Room:
        return {
            KeepAudit: lambda keep: self._rows.ask(f"{keep.entry.id:016x}", keep),
            ListAudit: self._list,
        }

    async def _list(self, query: ListAudit) -> list[AuditEntry]:
        conditions = [] if query.tenant is None else [is_same(_TENANT, query.tenant)]
        if query.before is not None:
            conditions.append(f"value_utf8 < '{max(0, query.before):016x}'")
        return await self._rows.list(*conditions, limit=query.limit)
