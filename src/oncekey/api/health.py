"""Whether the process lives, and whether its store answers. Open to everybody."""

from __future__ import annotations

import asyncio
import secrets

from oncekey.api.endpoint import Call, Endpoint, Reply
from oncekey.core.errors import StoreUnavailable
from oncekey.core.model import Ref
from oncekey.core.scope import Scope
from oncekey.wire.problem import Response
from oncekey.wire.replies import OK, ok

_PATIENCE = 5.0
_FINE = b'{"status":"ok"}'
# Nobody's.
_SCOPE = Scope("", "readyz")


async def healthy(_: Call) -> Response:
    return ok(_FINE)


async def ready(call: Call) -> Response:
    """Any key will do: what counts is that the store says something about it. Another one each
    time, so that no part of a store that has several is left out."""
    probe = Ref(_SCOPE, secrets.token_hex(8))
    try:
        async with asyncio.timeout(_PATIENCE):
            await call.ledger.apeek(probe)
    except TimeoutError:
        raise StoreUnavailable from None
    return ok(_FINE)


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/healthz",
        healthy,
        "Whether the process lives",
        {OK: Reply("It does.", "Health")},
        access="open",
    ),
    Endpoint(
        "GET",
        "/readyz",
        ready,
        "Whether the store answers",
        {OK: Reply("It does.", "Health")},
        access="open",
    ),
)
