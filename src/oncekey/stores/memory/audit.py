"""The oracle of the audit feed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oncekey.core.audit import AuditEntry, KeepAudit, ListAudit
from oncekey.core.looking import Looked
from oncekey.stores.memory.looking import looked


class MemoryAudit:
    def __init__(self, kept: dict[int, AuditEntry] | None = None) -> None:
        self._kept = {} if kept is None else kept

    def answers(self) -> dict[type, Callable[[Any], Any]]:
        return {KeepAudit: self._keep, ListAudit: self._list}

    def _keep(self, keep: KeepAudit) -> bool:
        return self._kept.setdefault(keep.entry.id, keep.entry) == keep.entry

    def _list(self, query: ListAudit) -> Looked[AuditEntry]:
        def fits(each: AuditEntry) -> bool:
            return (
                query.tenant in {None, each.tenant}
                and query.actor in {None, each.actor}
                and query.action in {None, each.action}
                and query.target in {None, each.target}
            )

        newest = [each for _, each in sorted(self._kept.items(), reverse=True)]
        return looked(newest, query, fits)
