"""Where things are shown: ids of the API as pages, for whoever names one."""

from __future__ import annotations

import re

from oncekey.console.visit import part

# By how an id begins: the part of the path of its page.
_BY_ID = {
    "dl": "deliveries",
    "ev": "events",
    "op": "keys",
    "pr": "promises",
    "tk": "workflows",
    "wf": "workflows",
    "wh": "webhooks",
}
_ID = re.compile(r"([a-z]{2})_[A-Za-z0-9]{16,64}(?::.+)?")
# What an id does not tell: the part of the path by the first word of an action.
_BY_ACTION = {"apikey": "apikeys", "retention": "retention", "schedule": "schedules"}
_GONE = frozenset({"key.purge", "webhook.delete"})


def place_of(name: str | None) -> str | None:
    """The page of an id, such as `/webhooks/wh_…`; None where there is none."""
    found = _ID.fullmatch(name or "")
    if found is None or found[1] not in _BY_ID:
        return None
    # A promise of a workflow is named after it: wf_…:payment.
    room = "promises" if ":" in found[0] else _BY_ID[found[1]]
    return f"/{room}/{part(found[0])}"


def place_of_target(action: str, target: str) -> str | None:
    """The page of what an entry of the audit feed is about; None for what is gone by it."""
    if action in _GONE:
        return None
    room = _BY_ACTION.get(action.partition(".")[0])
    return place_of(target) if room is None else f"/{room}/{part(target)}"


def place_of_actor(actor: str) -> str | None:
    """The page of the API key an admin came with; None for others, as `cli:ann`."""
    who = actor.removeprefix("admin:")
    return f"/apikeys/{part(who)}" if who != actor else None
