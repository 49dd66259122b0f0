"""Settings of `[[routes]]`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, get_args

from oncekey.config.field import LARGEST, setting
from oncekey.config.kinds import (
    choice,
    duration,
    fingerprint,
    flag,
    header_names,
    methods,
    target,
    text,
    whole,
)
from oncekey.edge.policy import Level, Policy, Uncertain

# Those that are not about how answers are kept.
_BESIDE = frozenset(
    {
        "path",
        "policy",
        "example",
        "upstream",
        "level",
        "identity",
        "uncertain",
        "source",
        "title",
    }
)


@dataclass(frozen=True, slots=True)
class RouteSettings:
    """Everything but the path may be left out; what is left out is as `wire.rule.Rule` and
    `edge.policy.EdgeRoute` have it."""

    path: str = setting(text, "")
    methods: tuple[str, ...] | None = setting(methods)
    policy: Policy | None = setting(choice(*get_args(Policy)))
    required: bool | None = setting(flag)
    upstream: str | None = setting(text)
    """Which of `[upstreams]` is asked; the app is, unless given."""
    level: Level | None = setting(choice(*get_args(Level)))
    identity: str | None = setting(choice("required", "optional"))
    uncertain: Uncertain | None = setting(choice(*get_args(Uncertain)))
    source: str | None = setting(text)
    title: str | None = setting(text)
    in_flight: str | None = setting(choice("conflict", "attach"))
    attach_timeout: float | None = setting(duration)
    takeover: str | None = setting(choice("rerun", "refuse", "recover"))
    recover: str | None = setting(target)
    retention: str | None = setting(text)
    fingerprint: str | tuple[str, ...] | None = setting(fingerprint)
    store_server_errors: bool | None = setting(flag)
    store_events: bool | None = setting(flag)
    max_stored_body: int | None = setting(whole(0, LARGEST))
    max_request_body: int | None = setting(whole(0, LARGEST))
    drop_headers: tuple[str, ...] | None = setting(header_names)
    fail_open: bool | None = setting(flag)
    example: str | None = setting(text)
    """A request body to try the route with; `oncekey serve` shows it when it starts."""

    @property
    def policy_in_force(self) -> Policy:
        """As given, also by the short form; keys have no business where things are only read."""
        if self.policy is not None:
            return self.policy
        if self.required is None:
            return "PROHIBITED"
        return "REQUIRED_A" if self.required else "ACCEPTED"

    def rule_options(self) -> dict[str, Any]:
        """What the file says about how keys and answers are treated, but for the policy."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            name: value
            for name, value in values.items()
            if value is not None and name not in _BESIDE
        }
