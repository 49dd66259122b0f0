"""Who settled a promise: a request, an admin, or a delivery. The key of the request tells."""

from __future__ import annotations

import re

import msgspec

from oncekey.api.admin.noting import BY_ADMIN, means_of
from oncekey.api.endpoint import Call
from oncekey.core.api_keys import ApiKey, is_id
from oncekey.core.execution import Promise
from oncekey.core.model import Record, number_of
from oncekey.durable.embedded.asking import REQUESTS, ref_of
from oncekey.durable.shapes import Shape
from oncekey.webhooks.naming import is_delivery

_DELIVERED = re.compile(r"(.+):(op_[0-9a-f]{16})", re.DOTALL)
_BY_ADMIN = re.compile(rf"{BY_ADMIN}(ak_[0-9a-f]{{16}})-[0-9a-f]{{64}}")


async def settler_of(call: Call, promise: Promise) -> Shape | None:
    """None while it is pending, and when nobody said who it was. `kind` is `request`, `admin` or
    `delivery`; `operation_id` leads to its key."""
    key = promise.settled_by
    if key is None:
        return None
    record = await call.ledger.apeek(ref_of(promise.tenant, REQUESTS, key))
    shape: Shape = {
        "kind": "request",
        "key": key,
        "operation_id": None if record is None else record.operation_id,
        "id": None,
    }
    admin = _BY_ADMIN.fullmatch(key)
    if admin is not None and await api_key_of(call, admin[1]) is not None:
        return {**shape, "kind": "admin", "id": admin[1]}
    delivery = await _delivery_with(call, promise, key)
    if delivery is not None:
        webhook = delivery.ref.scope.endpoint.rpartition("/")[2]
        named = {"operation_id": delivery.operation_id, "id": webhook}
        return {**shape, "kind": "delivery", **named}
    return shape


async def api_key_of(call: Call, key_id: str) -> ApiKey | None:
    if not is_id(key_id):
        return None
    # The newest of those below the next one.
    above = f"ak_{int(key_id[3:], 16) + 1:016x}"
    found = await means_of(call).callers.list(before=above, limit=1)
    return found[0] if found and found[0].id == key_id else None


async def _delivery_with(call: Call, promise: Promise, key: str) -> Record | None:
    """What follows a delivery has its key and its operation for a key. Any caller may write such a
    key, so the delivery itself must say that it was this promise."""
    found = _DELIVERED.fullmatch(key)
    number = None if found is None else number_of(found[2])
    record = None if number is None else await call.ledger.apeek(number)
    if found is None or record is None or not is_delivery(record.ref.scope):
        return None
    if record.ref.key != found[1] or record.outcome is None:
        return None
    told = _told_in(record.outcome.body)
    same = told.get("promise_id") == promise.public_id or told.get("status") == "parked"
    return record if same else None


def _told_in(body: bytes) -> Shape:
    try:
        return msgspec.json.decode(body, type=dict)
    except msgspec.MsgspecError:
        return {}
