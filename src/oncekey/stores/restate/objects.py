"""How OnceKey's handlers are declared to Restate: bytes in, bytes out, no journal kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import wraps
from typing import Any, Literal

import restate
from restate.exceptions import TerminalError
from restate.retry_policy import InvocationRetryPolicy
from restate.serde import BytesSerde

BYTES = BytesSerde()
JSON = "application/json"
Handler = Callable[[Any, bytes], Awaitable[bytes]]

# An answer is there for a caller that asks again on another node, and no longer.
_ANSWERS_KEPT = timedelta(minutes=10)
# Whoever waits has a deadline of its own; the object must be there for the next one soon.
_RETRY = InvocationRetryPolicy(
    initial_interval=timedelta(milliseconds=50),
    exponentiation_factor=2.0,
    max_interval=timedelta(seconds=2),
)


def new_object(name: str) -> restate.VirtualObject:
    return restate.VirtualObject(
        name,
        idempotency_retention=_ANSWERS_KEPT,
        journal_retention=timedelta(0),
        invocation_retry_policy=_RETRY,
    )


def new_service(name: str) -> restate.Service:
    return restate.Service(
        name,
        idempotency_retention=_ANSWERS_KEPT,
        journal_retention=timedelta(0),
        invocation_retry_policy=_RETRY,
    )


def add(
    to: restate.VirtualObject,
    name: str,
    function: Handler,
    kind: Literal["exclusive", "shared"] = "exclusive",
) -> None:
    """`function(ctx, body)` is the handler of that name."""
    to.handler(
        name, kind=kind, accept="*/*", content_type=JSON, input_serde=BYTES, output_serde=BYTES
    )(_guarded(function))


def add_to_service(to: restate.Service, name: str, function: Handler) -> None:
    to.handler(name, accept="*/*", content_type=JSON, input_serde=BYTES, output_serde=BYTES)(
        _guarded(function)
    )


def _guarded(function: Handler) -> Any:
    """A mistake is told to whoever asked. Tried again for ever, it would keep the object shut."""

    @wraps(function)
    async def handler(ctx: Any, body: bytes) -> bytes:
        try:
            return await function(ctx, body)
        except (TerminalError, ConnectionError):
            raise
        except Exception as error:
            raise TerminalError(f"{type(error).__name__}: {error}") from error

    handler.__annotations__ = {"body": bytes, "return": bytes}
    return handler
