"""Runs of schedules that did not end well, for a page of schedules without asking for each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from oncekey.api.endpoint import Call
from oncekey.core.execution import Sort, Status
from oncekey.core.model import Ref, State
from oncekey.core.ports import Query
from oncekey.core.schedules import StoredSchedule
from oncekey.core.scope import namespace_of
from oncekey.core.work import ListExecutions
from oncekey.schedules.dispatch import ENDPOINT, SUBJECT, ref_of
from oncekey.schedules.schedule import key_of

_MOST, _LOOKED_AT = 100, 10_000


class BadRuns(NamedTuple):
    """The newest of them."""

    ticks: frozenset[Ref]
    """Those that failed before anything was started."""
    workflows: dict[tuple[str, str], str]
    """What was started, by tenant and key: the word of its status."""

    def state_of(self, stored: StoredSchedule) -> str | None:
        """Of the last run, when it did not end well."""
        if stored.last_at is None:
            return None
        if ref_of(stored, stored.last_at) in self.ticks:
            return "failed"
        return self.workflows.get((stored.tenant, key_of(stored.id, stored.last_at)))


async def bad_runs(call: Call, schedules: Iterable[StoredSchedule], tenant: str | None) -> BadRuns:
    """Of these, which are of the tenant, or of several for None."""
    workflows: dict[tuple[str, str], str] = {}
    if all(each.last_at is None for each in schedules):
        return BadRuns(frozenset(), workflows)
    for status in (Status.FAILED, Status.PAUSED):
        query = ListExecutions(tenant, status, sort=Sort.WORKFLOW, limit=_MOST, look=_LOOKED_AT)
        for each in await call.engine.executions(query):
            if each.key is not None:
                workflows[each.tenant, each.key] = status.name.lower()
    namespace = None if tenant is None else namespace_of(tenant, subject=SUBJECT)
    failed = Query(State.FAILED, None, namespace, None, _MOST, endpoint=ENDPOINT, look=_LOOKED_AT)
    found = await asyncio.to_thread(call.ledger.list, failed)
    return BadRuns(frozenset(each.record.ref for each in found), workflows)
