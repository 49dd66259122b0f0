"""The room of control, and of looking after what is due or past its time.

Objects are told by Restate when their time has come. Looking for it finds the same by SQL, should
somebody have taken those calls away.
"""

from __future__ import annotations

from typing import Any

from oncekey.core.answers import Controlled, Ripe
from oncekey.core.ports import Gone
from oncekey.core.work import Control, Due, Forget
from oncekey.stores.restate import control, execution, promise, request
from oncekey.stores.restate.asking.executions import Executions
from oncekey.stores.restate.claims import Room
from oncekey.stores.restate.keys import PARKED
from oncekey.stores.restate.link import Link
from oncekey.stores.restate.stranded import Stranded
from oncekey.stores.restate.work.held import DUE, UNTIL


class Controls:
    def __init__(self, line: Link, executions: Executions) -> None:
        self._line = line
        self._executions = executions
        self._stranded = Stranded(line)

    def answers(self) -> Room:
        return {Control: self._control, Due: self._due, Forget: self._forget}

    async def _control(self, asked: Control) -> Controlled | Gone:
        if asked.action != "resume":
            return await self._controlled(asked)
        calls = await self._stranded.calls_for(asked.execution)
        if calls:
            # To whoever asks, it is paused; to Restate, only the call for it is.
            await self._executions.ask(asked.execution, "halt", [asked.tenant, asked.now])
        answer = await self._controlled(asked)
        await self._stranded.release(calls)
        return answer

    async def _controlled(self, asked: Control) -> Controlled | Gone:
        id_ = control.control_id(asked.tenant, asked.request_key)
        answer: Controlled | Gone
        answer, told = await self._line.call(control.SERVICE, id_, "control", asked)
        if told and isinstance(answer, Controlled):
            answer = answer._replace(ended=await self._executions.woken(told))
        return answer

    # -- time ----------------------------------------------------------------------------

    async def _due(self, asked: Due) -> Ripe:
        """The longest due come first."""
        told = Ripe([], [], None)
        for service, id_, _ in await self._times(DUE, asked.now, asked.limit):
            left = asked.limit - len(told.woken) - len(told.alone)
            if left <= 0:
                break
            ripe, callers = await self._line.call(service, id_, "ripen", asked._replace(limit=left))
            woken = [*told.woken, *ripe.woken, *await self._executions.woken(callers)]
            told = Ripe(woken, told.ended + ripe.ended, None, told.alone + ripe.alone)
        later = await self._times(DUE, (1 << 62), 1)
        return told._replace(next_at=later[0][2] if later else None)

    async def _times(self, state: str, until: int, limit: int) -> list[tuple[str, str, int]]:
        """Whatever has a time, the earliest first."""
        found: list[tuple[str, str, int]] = []
        for service in (execution.SERVICE, promise.SERVICE):
            found += await self._rows(service, state, until, limit)
        return sorted(found, key=lambda each: (each[2], each[1]))[:limit]

    async def _rows(
        self, service: str, state: str, until: int, limit: int
    ) -> list[tuple[str, str, int]]:
        where = f"substr(value_utf8, 1, 16) <= '{until:016x}'"
        rows = await self._line.states(
            service, state, where=where, order="value_utf8, service_key", limit=limit
        )
        return [(service, id_, int(value[:16], 16)) for id_, _, value in rows]

    async def _forget(self, asked: Forget) -> int:
        """At most `limit` of each kind."""
        now, before, limit = asked
        kinds: tuple[tuple[str, str, str, int], ...] = (
            (execution.SERVICE, UNTIL, "forget", now),
            (promise.SERVICE, UNTIL, "forget", now),
            (request.SERVICE, PARKED, "unpark", now),
            (request.SERVICE, UNTIL, "expire", now),
            (control.SERVICE, UNTIL, "forget", before),
        )
        return sum([await self._forgotten(*kind, limit) for kind in kinds])

    async def _forgotten(
        self, service: str, state: str, handler: str, until: int, limit: int
    ) -> int:
        count = 0
        for _, id_, _ in await self._rows(service, state, until, limit):
            told: Any = await self._line.call(service, id_, handler, until)
            count += bool(told)
        return count
