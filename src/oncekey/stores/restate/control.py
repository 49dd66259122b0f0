"""The object `oncekey.Control`, one for each request key of a tenant: what it was used for."""

from __future__ import annotations

import hashlib
from typing import Any

from oncekey.core.answers import Controlled
from oncekey.core.ports import Gone
from oncekey.core.work import Control
from oncekey.stores.memory.claims import Claims
from oncekey.stores.memory.control import MemoryControl
from oncekey.stores.memory.kept import Kept, KeptControl
from oncekey.stores.restate.objects import BYTES, add, new_object
from oncekey.stores.restate.values import pack, unpack
from oncekey.stores.restate.work.calls import call, id_of, send, space_of
from oncekey.stores.restate.work.following import EXECUTIONS
from oncekey.stores.restate.work.held import UNTIL

SERVICE = "oncekey.Control"
_KEPT = 7 * 24 * 3600 * 1000
_STATE = "control"


def control_id(tenant: str, request_key: str) -> str:
    """The length says where the tenant ends, so that no two keys are taken for one."""
    told = f"{len(tenant)}:{tenant}{request_key}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(told).hexdigest()


async def control(ctx: Any, body: bytes) -> bytes:
    """`Control`. The effect and what is kept of it are one invocation, which goes on to its end
    whatever happens to the process that serves it. Answers `[answer, who is told of an end]`."""
    asked: Control = unpack(body)
    kept = await ctx.get(_STATE, serde=BYTES)
    if kept is not None:
        return pack([_seen(asked, KeptControl(*unpack(kept))), []])
    answer, told = await (_fork if asked.action == "fork" else _change)(ctx, asked)
    if isinstance(answer, Gone) or answer.verdict == "unknown":
        return pack([answer, []])
    succeeded = answer.verdict == "done"
    about = (asked.action, asked.execution, asked.parameters)
    ctx.set(_STATE, pack([*about, succeeded, answer.answer, asked.now]), serde=BYTES)
    ctx.set(UNTIL, f"{asked.now:016x}".encode(), serde=BYTES)
    send(ctx, SERVICE, id_of(ctx), "forget", asked.now, at=asked.now + _KEPT)
    return pack([answer, told])


def _seen(asked: Control, kept: KeptControl) -> Controlled:
    oracle = Kept(Claims(), 0)
    oracle.controls[asked.tenant, asked.request_key] = kept
    seen: Controlled = MemoryControl(oracle).answers()[Control](asked)
    return seen


async def _change(ctx: Any, asked: Control) -> Any:
    return await call(ctx, EXECUTIONS, _key(ctx, asked.execution), "control", asked)


async def _fork(ctx: Any, asked: Control) -> Any:
    """What the source has, and then the execution that begins with it."""
    answer, creation = await call(ctx, EXECUTIONS, _key(ctx, asked.execution), "fork", asked)
    if creation is None:
        return answer, []
    made = await call(ctx, EXECUTIONS, _key(ctx, asked.fork), "create", creation)
    return made if isinstance(made, Gone) else answer, []


def _key(ctx: Any, number: int) -> str:
    return f"{space_of(ctx)}.{number:016x}"


async def forget(ctx: Any, body: bytes) -> bytes:
    """`time`: nothing is left of what was asked by then. Answers whether it was."""
    asked_at = await ctx.get(UNTIL, serde=BYTES)
    if asked_at is None or int(asked_at, 16) > unpack(body):
        return pack(False)
    ctx.clear_all()
    return pack(True)


def control_object() -> Any:
    made = new_object(SERVICE)
    add(made, "control", control)
    add(made, "forget", forget)
    return made
