"""From one configuration to the next while the server runs: what has to wait for a restart."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, NamedTuple

from oncekey.config.settings import Settings

# The ledger is open, the socket taken, the processes are there, and schedules are declared. So is
# what was made for trying things out.
_AT_START = (
    *("store", "server", "app", "schedules", "restate", "console"),
    *("metrics", "log", "traces"),
)


class Change(NamedTuple):
    settings: Settings
    """The new ones, but for what only a start can change."""
    waiting: tuple[str, ...]
    """Names of settings that are other than before and wait for a restart."""


def change_of(old: Settings, new: Settings) -> Change:
    kept = {name: getattr(old, name) for name in _AT_START}
    auth = replace(new.auth, api_keys=replace(new.auth.api_keys, demo=old.auth.api_keys.demo))
    waiting = [each for name in _AT_START for each in _differing(name, old, new)]
    if auth != new.auth:
        waiting.append("auth.api_keys.demo")
    webhooks = replace(new.webhooks, demo=old.webhooks.demo)
    if webhooks != new.webhooks:
        waiting.append("webhooks.demo")
    return Change(replace(new, auth=auth, webhooks=webhooks, **kept), tuple(waiting))


def _differing(name: str, old: Any, new: Any) -> list[str]:
    before, after = getattr(old, name), getattr(new, name)
    if isinstance(before, tuple):
        return [] if before == after else [name]
    return [
        f"{name}.{each.name}"
        for each in fields(before)
        if getattr(before, each.name) != getattr(after, each.name)
    ]
