"""Which steps of named SQL carry a request out, whatever room it comes from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oncekey.stores import api_keys, requests, schedules
from oncekey.stores.requests import Setting, Steps
from oncekey.stores.work import plans as work

Plan = Callable[[Any, Setting], Steps]

_PLANS: dict[type, Plan] = {**work.PLANS, **api_keys.PLANS, **schedules.PLANS}


def carry_out(request: Any, setting: Setting) -> Steps:
    plan = _PLANS.get(type(request))
    return requests.carry_out(request, setting) if plan is None else plan(request, setting)


# Requests that change nothing need no transaction.
READS: frozenset[type] = work.READS | api_keys.READS | schedules.READS
