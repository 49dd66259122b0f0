"""Which steps of named SQL carry a request out, whatever room it comes from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oncekey.stores import api_keys, audit, deliveries, requests, schedules, webhooks
from oncekey.stores.requests import Setting, Steps
from oncekey.stores.work import plans as work

Plan = Callable[[Any, Setting], Steps]

_ROOMS = (work, api_keys, schedules, webhooks, deliveries, audit)
_PLANS: dict[type, Plan] = {kind: plan for room in _ROOMS for kind, plan in room.PLANS.items()}


def carry_out(request: Any, setting: Setting) -> Steps:
    plan = _PLANS.get(type(request))
    return requests.carry_out(request, setting) if plan is None else plan(request, setting)


# Requests that change nothing need no transaction.
READS: frozenset[type] = frozenset(kind for room in _ROOMS for kind in room.READS)
