"""The room of the audit feed: a row for each entry."""

from __future__ import annotations

from oncekey.core.audit import AuditEntry, KeepAudit, ListAudit
from oncekey.core.looking import Looked
from oncekey.stores.memory.audit import MemoryAudit
from oncekey.stores.restate.columns import contains, is_same
from oncekey.stores.restate.link import Link
from oncekey.stores.restate.row import Room, Rows, Table

_TENANT = 2
_LAST = (1 << 63) - 1

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

    async def _list(self, query: ListAudit) -> Looked[AuditEntry]:
        """What the columns do not tell is looked for in pages."""
        found: Looked[AuditEntry] = Looked()
        before = _LAST if query.before is None else query.before
        while (missing := query.limit - len(found)) > 0:
            conditions = [f"value_utf8 < '{max(0, before):016x}'", *_conditions(query)]
            page = await self._rows.list(*conditions, limit=missing)
            found += [each for each in page if _fits(each, query)]
            if len(page) < missing:
                break
            before = page[-1].id
        return found


def _conditions(query: ListAudit) -> list[str]:
    """SQL for what it looks like; text may only resemble it."""
    found = [] if query.tenant is None else [is_same(_TENANT, query.tenant)]
    texts = (query.actor, query.action, query.target)
    return [*found, *(contains(each) for each in texts if each is not None)]


def _fits(each: AuditEntry, query: ListAudit) -> bool:
    return (
        query.actor in {None, each.actor}
        and query.action in {None, each.action}
        and query.target in {None, each.target}
    )
