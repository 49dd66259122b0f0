"""How a failure is written down: JSON with a code, a message, and whatever data came with it."""

from __future__ import annotations

from typing import Any

import msgspec

from oncekey.core.errors import OnceKeyError

_MAX_MESSAGE = 4000


class Failure(msgspec.Struct, omit_defaults=True):
    """`code` is an error's code, or the name of the exception that was raised."""

    code: str
    message: str
    data: Any = None
    status: int = 0


_decode = msgspec.json.Decoder(Failure).decode
_encode = msgspec.json.Encoder().encode


def failure_of(error: BaseException) -> Failure:
    code = error.code if isinstance(error, OnceKeyError) else type(error).__name__
    data = getattr(error, "reason", None) or getattr(error, "existing_promise_id", None)
    return Failure(code, str(error)[:_MAX_MESSAGE], data, getattr(error, "status", 0))


def encode_failure(failure: Failure) -> bytes:
    return _encode(failure)


def decode_failure(body: bytes | None) -> Failure:
    """What was written, also when it is not of this form: a rejection may hold any JSON."""
    try:
        return _decode(body or b"")
    except msgspec.MsgspecError:
        return Failure("rejected", (body or b"").decode(errors="replace")[:_MAX_MESSAGE])
