"""All rooms of rows, and the objects that keep them."""

from __future__ import annotations

from typing import Any

from oncekey.stores.restate.link import Link
from oncekey.stores.restate.rooms.api_keys import API_KEYS, ApiKeys
from oncekey.stores.restate.rooms.audit import AUDIT, Audit
from oncekey.stores.restate.rooms.deliveries import Deliveries, lines_object
from oncekey.stores.restate.rooms.schedules import Schedules, schedules_object
from oncekey.stores.restate.rooms.webhooks import WEBHOOKS, Webhooks
from oncekey.stores.restate.row import row_object


def row_objects() -> list[Any]:
    return [row_object([API_KEYS, AUDIT, WEBHOOKS]), lines_object(), schedules_object()]


def row_rooms(link: Link) -> list[Any]:
    return [ApiKeys(link), Audit(link), Deliveries(link), Schedules(link), Webhooks(link)]
