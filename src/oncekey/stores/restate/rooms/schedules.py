"""The room of schedules, and the object `oncekey.Schedules` that has all of a space: what is due is
asked for often, and must not be looked for among everything else that a cluster keeps."""

from __future__ import annotations

from typing import Any

from oncekey.core.schedules import (
    DropSchedule,
    DueSchedules,
    FindSchedule,
    KeepSchedule,
    ListSchedules,
    PauseSchedule,
    TickTaken,
)
from oncekey.stores.memory.schedules import MemorySchedules
from oncekey.stores.restate.link import Link
from oncekey.stores.restate.objects import BYTES, add, new_object
from oncekey.stores.restate.row import Room
from oncekey.stores.restate.values import pack, unpack

SERVICE = "oncekey.Schedules"
_ALL = "all"
_CHANGES = (KeepSchedule, PauseSchedule, TickTaken, DropSchedule)
_READS = (FindSchedule, ListSchedules, DueSchedules)


class Schedules:
    def __init__(self, link: Link) -> None:
        self._link = link

    def answers(self) -> Room:
        return {
            **dict.fromkeys(_CHANGES, self._asking("change")),
            **dict.fromkeys(_READS, self._asking("read")),
        }

    def _asking(self, handler: str) -> Any:
        async def ask(request: Any) -> Any:
            return await self._link.call(SERVICE, _ALL, handler, request)

        return ask


async def change(ctx: Any, body: bytes) -> bytes:
    """What the oracle says of the one schedule that is meant."""
    request = unpack(body)
    kept = await _load(ctx, [request.id])
    before = kept.get(request.id)
    answer = MemorySchedules(kept).answers()[type(request)](request)
    after = kept.get(request.id)
    if after is None and before is not None:
        ctx.clear(request.id)
    elif after is not None and after != before:
        ctx.set(request.id, pack(after), serde=BYTES)
    return pack(answer)


async def read(ctx: Any, body: bytes) -> bytes:
    request = unpack(body)
    one = isinstance(request, FindSchedule)
    kept = await _load(ctx, [request.id] if one else await ctx.state_keys())
    return pack(MemorySchedules(kept).answers()[type(request)](request))


async def _load(ctx: Any, names: list[str]) -> dict[str, Any]:
    found = {name: await ctx.get(name, serde=BYTES) for name in names}
    return {name: unpack(kept) for name, kept in found.items() if kept is not None}


def schedules_object() -> Any:
    made = new_object(SERVICE)
    add(made, "change", change)
    add(made, "read", read, kind="shared")
    return made
