"""Calls for executions that somebody has paused with Restate's own tools."""

from __future__ import annotations

import msgspec

from oncekey.stores.restate.link import Link, text
from oncekey.stores.restate.values import unpack

_PAUSED = (
    "SELECT i.id, j.entry_json AS entry FROM sys_invocation i JOIN sys_journal j ON j.id = i.id "
    "WHERE i.status = 'paused' AND i.target_handler_name = 'run' AND j.index = 0 "
    "AND i.target_service_name LIKE "
)


class _Input(msgspec.Struct):
    payload: list[int]


class _Command(msgspec.Struct):
    given: _Input = msgspec.field(name="Input")


class _Entry(msgspec.Struct):
    command: _Command = msgspec.field(name="Command")


_decode = msgspec.json.Decoder(_Entry).decode


class Stranded:
    def __init__(self, link: Link) -> None:
        self._link = link

    async def calls_for(self, number: int) -> list[str]:
        """Those for an execution that are paused."""
        mine = "oncekey.%" if self._link.space == "default" else f"oncekey.{self._link.space}.%"
        rows = await self._link.admin.query(_PAUSED + text(mine))
        return [row["id"] for row in rows if _number_in(row["entry"]) == number]

    async def release(self, calls: list[str]) -> None:
        """Let Restate go on with them."""
        for each in calls:
            await self._link.admin.ask("PATCH", f"/invocations/{each}/resume")


def _number_in(entry: str) -> int:
    number: int = unpack(bytes(_decode(entry).command.given.payload))[0]
    return number
