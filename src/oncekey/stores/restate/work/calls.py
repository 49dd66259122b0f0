"""How objects reach each other from within a handler: one-way, or waiting for the answer."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from oncekey.stores.restate.values import pack, unpack


def space_of(ctx: Any) -> str:
    """The ledger an object belongs to, which is the first part of its key."""
    space: str = ctx.key().partition(".")[0]
    return space


def id_of(ctx: Any) -> str:
    found: str = ctx.key().partition(".")[2]
    return found


def nonce_in(ctx: Any) -> str:
    """One of this call, and the same whenever it is begun anew."""
    told: str = ctx.request().id
    return told


def send(
    ctx: Any,
    service: str,
    id: str,  # noqa: A002 - of an object in the same space
    handler: str,
    value: Any,
    *,
    at: int | None = None,
    nonce: str | None = None,
) -> None:
    """Carried out once, after this handler has ended, not before `at`; nobody waits for it."""
    delay = timedelta(0) if at is None else timedelta(milliseconds=max(0, at - wall_clock()))
    ctx.generic_send(
        service,
        handler,
        pack(value),
        key=f"{space_of(ctx)}.{id}",
        send_delay=delay,
        idempotency_key=nonce,
    )


async def call(ctx: Any, service: str, key: str, handler: str, value: Any) -> Any:
    """Only for what no object waits for: one that waits for another may wait for itself."""
    return unpack(await ctx.generic_call(service, handler, pack(value), key=key))


def wall_clock() -> int:
    """Only for delays: whatever else a handler does must be the same when it is done again."""
    return time.time_ns() // 1_000_000


def time_here(due: int, there: int) -> int:
    """When something is due by the clock of this process, if it was `there` for its maker. A clock
    that is ahead makes nothing wait until all others are as far."""
    return due - max(0, there - wall_clock())
