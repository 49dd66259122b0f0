"""The object `oncekey.Owners`, one for a space: which processes are alive, and what they share."""

from __future__ import annotations

from typing import Any

import msgspec

from oncekey.stores.restate.objects import BYTES, add, new_object
from oncekey.stores.restate.values import pack, unpack

SERVICE = "oncekey.Owners"
ALL = "all"
_STATE = "owners"
# An owner that was silent for so many leases is forgotten, which is to be gone as well.
_REMEMBERED = 100


class Owners(msgspec.Struct):
    """Times are milliseconds of a clock of its own. It goes on with the signs of life, which say
    how late it is by then: no wall clock has a part in it, so none that is set makes anybody fall
    silent, or keeps anybody from it."""

    latest: int = 0
    """When anybody last gave a sign of life."""
    beats: dict[str, int] = {}
    retention: dict[str, float] = {}
    swept_at: int = 0

    def hear(self, owner: int, lease: int, heartbeat: int, now: int) -> None:
        """A sign of life, when it is `now` at least. When nobody could give one for long, nobody
        was silent meanwhile."""
        now = max(now, self.latest)
        gap = now - self.latest
        if gap > min(lease, max(lease // 2, heartbeat * 3 // 2)):
            self.beats = {each: at + gap for each, at in self.beats.items()}
        self.latest = now
        self.beats[str(owner)] = now
        oldest = now - _REMEMBERED * lease
        self.beats = {each: at for each, at in self.beats.items() if at >= oldest}

    def silences(self) -> dict[str, int]:
        """For how long each had given no sign of life when somebody last did. That more time has
        passed since then says nothing: it may be that nobody can be heard."""
        return {owner: self.latest - at for owner, at in self.beats.items()}


_decode = msgspec.json.Decoder(Owners).decode


async def _load(ctx: Any) -> Owners:
    kept = await ctx.get(_STATE, serde=BYTES)
    return Owners() if kept is None else _decode(kept)


def _keep(ctx: Any, owners: Owners) -> None:
    ctx.set(_STATE, msgspec.json.encode(owners), serde=BYTES)


async def beat(ctx: Any, body: bytes) -> bytes:
    """`[owner, lease, heartbeat, now]`; answers how late it is, and the retention classes."""
    owner, lease, heartbeat, now = unpack(body)
    owners = await _load(ctx)
    owners.hear(owner, lease, heartbeat, now)
    _keep(ctx, owners)
    return pack([owners.latest, owners.retention])


async def retire(ctx: Any, body: bytes) -> bytes:
    """The owner is gone from now on."""
    owners = await _load(ctx)
    gone = owners.beats.pop(str(unpack(body)), None)
    _keep(ctx, owners)
    return pack(gone is not None)


async def silences(ctx: Any, _: bytes) -> bytes:
    return pack((await _load(ctx)).silences())


async def retention(ctx: Any, _: bytes) -> bytes:
    return pack((await _load(ctx)).retention)


async def set_retention(ctx: Any, body: bytes) -> bytes:
    name, seconds = unpack(body)
    owners = await _load(ctx)
    owners.retention[name] = seconds
    _keep(ctx, owners)
    return pack(True)


async def turn(ctx: Any, body: bytes) -> bytes:
    """`[now, interval]`: whether nobody has swept for so long; then it is the asker's turn."""
    now, interval = unpack(body)
    owners = await _load(ctx)
    if now - owners.swept_at < interval:
        return pack(False)
    owners.swept_at = now
    _keep(ctx, owners)
    return pack(True)


def owners_object() -> Any:
    made = new_object(SERVICE)
    for each in (beat, retire, set_retention, turn):
        add(made, each.__name__, each)
    add(made, "silences", silences, kind="shared")
    add(made, "retention", retention, kind="shared")
    return made
