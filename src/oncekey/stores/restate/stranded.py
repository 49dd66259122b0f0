"""Calls for executions that do not go on by themselves.

Somebody has paused them with Restate's own tools; or they are made at an address where nobody is
any more: Restate holds on to one from which it heard the beginning of an answer, and a process that
dies before the end of it was heard comes back at another address, or never.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from oncekey.stores.restate.dispatch import SERVICE as WORK
from oncekey.stores.restate.link import Link, text
from oncekey.stores.restate.values import unpack

_PAUSED = (
    "SELECT i.id, j.entry_json AS entry FROM sys_invocation i JOIN sys_journal j ON j.id = i.id "
    "WHERE i.status = 'paused' AND i.target_handler_name = 'run' AND j.index = 0 "
    "AND i.target_service_name LIKE "
)
# What whoever makes the calls has in memory: to look there costs the same however many calls there
# are for later. Of more than so many the rest is for the next time.
_FAILING = (
    "SELECT s.id FROM sys_invocation_state s JOIN sys_deployment d "
    "ON d.id = s.last_attempt_deployment_id "
    "WHERE NOT s.in_flight AND d.endpoint LIKE '%/work%'"
)
_MOST = 200
_ELSEWHERE = (
    "SELECT i.id, i.target_service_name AS service, j.entry_json AS entry "
    "FROM sys_invocation_status i JOIN sys_journal j ON j.id = i.id "
    "JOIN sys_service s ON s.name = i.target_service_name "
    "JOIN sys_deployment d ON d.id = s.deployment_id "
    "WHERE j.index = 0 AND i.pinned_deployment_id <> s.deployment_id"
)


class _Input(msgspec.Struct):
    payload: list[int]


class _Command(msgspec.Struct):
    given: _Input = msgspec.field(name="Input")


class _Entry(msgspec.Struct):
    command: _Command = msgspec.field(name="Command")


_decode = msgspec.json.Decoder(_Entry).decode


class _Asked(NamedTuple):
    """What a call is for."""

    number: int
    dispatch: int


class Stranded:
    def __init__(self, link: Link) -> None:
        self._link = link
        self._after = ""
        """The last call that was looked at, while there are more."""

    async def calls_for(self, number: int) -> list[str]:
        """Those for an execution that are paused."""
        mine = "oncekey.%" if self._link.space == "default" else f"oncekey.{self._link.space}.%"
        rows = await self._link.admin.query(_PAUSED + text(mine))
        return [row["id"] for row in rows if _asked_by(row).number == number]

    async def release(self, calls: list[str]) -> None:
        """Let Restate go on with them."""
        for each in calls:
            await self._link.admin.ask("PATCH", f"/invocations/{each}/resume")

    async def call_back(self, services: Iterable[str], uri: str) -> None:
        """Calls of these services that fail elsewhere are made at `uri`, if the services are there
        now. The old one ends after that, so that there is one at any time: a second one does no
        harm."""
        for row in await self._elsewhere(services, uri):
            number, dispatch = _asked_by(row)
            await self._link.call(WORK, None, "dispatch", [row["service"], number, dispatch])
            await self._link.admin.ask("PATCH", f"/invocations/{row['id']}/kill")

    async def _elsewhere(self, services: Iterable[str], uri: str) -> list[dict[str, Any]]:
        failing = await self._failing()
        if not failing:
            return []
        ids, names = ", ".join(map(text, failing)), ", ".join(map(text, services))
        return await self._link.admin.query(
            f"{_ELSEWHERE} AND i.id IN ({ids}) AND i.target_service_name IN ({names}) "
            f"AND rtrim(d.endpoint, '/') = {text(uri)}"
        )

    async def _failing(self) -> list[str]:
        """So many after those of the last time, and from the beginning again after the last."""
        where = f"{_FAILING} AND s.id > {text(self._after)} ORDER BY s.id LIMIT {_MOST}"
        found = [row["id"] for row in await self._link.admin.query(where)]
        self._after = found[-1] if len(found) == _MOST else ""
        return found


def _asked_by(row: dict[str, Any]) -> _Asked:
    number, dispatch, *_ = unpack(bytes(_decode(row["entry"]).command.given.payload))
    return _Asked(number, dispatch)
