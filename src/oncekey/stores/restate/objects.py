"""How OnceKey's handlers are declared to Restate: bytes in, bytes out, no journal kept."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import wraps
from typing import Any, Literal

import restate
from restate._internal import VMException
from restate.exceptions import TerminalError
from restate.retry_policy import InvocationRetryPolicy
from restate.serde import BytesSerde

log = logging.getLogger("oncekey")

BYTES = BytesSerde()
JSON = "application/json"
Handler = Callable[[Any, bytes], Awaitable[bytes]]

# An answer is there for a caller that asks again on another node, and no longer.
ANSWERS_KEPT = timedelta(minutes=10)
# A handler takes milliseconds. One whose process has frozen is called elsewhere, and its object is
# not shut for longer.
_FROZEN = timedelta(seconds=10)
# Without a number, Restate takes its own: 70, after which the object would stay shut.
_FOR_EVER = 1_000_000_000


def retry_policy(
    max_attempts: int | None = None, on_max_attempts: Literal["pause", "kill"] = "pause"
) -> InvocationRetryPolicy:
    """Whoever waits has a deadline of its own; the object must be there for the next one soon.
    Without `max_attempts` it is tried for ever."""
    return InvocationRetryPolicy(
        initial_interval=timedelta(milliseconds=50),
        exponentiation_factor=2.0,
        max_interval=timedelta(seconds=2),
        max_attempts=max_attempts or _FOR_EVER,
        on_max_attempts=on_max_attempts,
    )


def new_object(name: str) -> restate.VirtualObject:
    return restate.VirtualObject(
        name,
        inactivity_timeout=_FROZEN,
        abort_timeout=_FROZEN,
        journal_retention=timedelta(0),
        invocation_retry_policy=retry_policy(),
    )


def new_service(name: str) -> restate.Service:
    return restate.Service(
        name,
        inactivity_timeout=_FROZEN,
        abort_timeout=_FROZEN,
        journal_retention=timedelta(0),
        invocation_retry_policy=retry_policy(),
    )


def add(
    to: restate.VirtualObject,
    name: str,
    function: Handler,
    kind: Literal["exclusive", "shared"] = "exclusive",
    *,
    lazy: bool = False,
    brief: bool = False,
) -> None:
    """`function(ctx, body)` is the handler of that name. `lazy`: the state of the object does not
    come with the call, and each look at it is one more exchange with Restate. `brief`: it only
    looks at the state and changes it, see `brief`."""
    to.handler(
        name,
        kind=kind,
        enable_lazy_state=lazy or None,
        accept="*/*",
        content_type=JSON,
        input_serde=BYTES,
        output_serde=BYTES,
        idempotency_retention=ANSWERS_KEPT,
    )(_guarded(function, brief=brief))


def add_to_service(to: restate.Service, name: str, function: Handler) -> None:
    to.handler(
        name,
        accept="*/*",
        content_type=JSON,
        input_serde=BYTES,
        output_serde=BYTES,
        idempotency_retention=ANSWERS_KEPT,
    )(_guarded(function))


def is_brief(declared: Any) -> bool:
    return getattr(declared.fn, "is_brief", False)


def _guarded(function: Handler, *, brief: bool = False) -> Any:
    """A mistake is told to whoever asked. Tried again for ever, it would keep the object shut. When
    Restate has something else of the call, it takes no other answer."""

    @wraps(function)
    async def handler(ctx: Any, body: bytes) -> bytes:
        try:
            return await function(ctx, body)
        except (TerminalError, ConnectionError, VMException):
            raise
        except Exception as error:
            # Of what was sent one-way nobody would hear otherwise.
            log.exception("a call from Restate could not be carried out")
            raise TerminalError(f"{type(error).__name__}: {error}") from error

    handler.__annotations__ = {"body": bytes, "return": bytes}
    handler.is_brief = brief  # type: ignore[attr-defined]
    return handler
