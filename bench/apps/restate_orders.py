"""What Restate's ingress calls where OnceKey is not: a service that asks the one behind, as the
documentation of Restate does it (`ctx.run`), and at once.

Its connections are OnceKey's, and its journal is not kept: so it is as fast as it can be.
"""

import os
from datetime import timedelta
from typing import Any

import msgspec
import restate

from oncekey.stores.restate.nodes import Nodes

_LINES = ((b"content-type", b"application/json"),)
_PATIENCE = 10.0

service = Nodes([os.environ["BENCH_SERVICE"]])
orders = restate.Service("Orders", journal_retention=timedelta(0))


async def create(order: dict[str, Any]) -> dict[str, Any]:
    body = msgspec.json.encode(order)
    reply = await service.ask(b"POST", b"/orders", _LINES, body, timeout=_PATIENCE)
    made: dict[str, Any] = msgspec.json.decode(reply.body)
    return made


@orders.handler()
async def at_once(_: restate.Context, order: dict[str, Any]) -> dict[str, Any]:
    return await create(order)


@orders.handler()
async def in_run(ctx: restate.Context, order: dict[str, Any]) -> dict[str, Any]:
    return await ctx.run_typed("create", create, order=order)


app = restate.app([orders])
