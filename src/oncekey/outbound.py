"""Outbound calls: httpx transports that send a key derived from the operation around them."""

from oncekey.client.errors import OutsideOperation
from oncekey.client.outbound import (
    AsyncIdempotentTransport,
    IdempotentTransport,
    call,
    derived_key,
    inside,
    protect,
)

__all__ = [
    "AsyncIdempotentTransport",
    "IdempotentTransport",
    "OutsideOperation",
    "call",
    "derived_key",
    "inside",
    "protect",
]
