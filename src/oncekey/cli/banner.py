"""What `oncekey serve` says when it starts: where it listens, and what to try."""

from __future__ import annotations

import json
import shlex
import sys
from functools import partial
from typing import NamedTuple

from oncekey.compose.address import without_secrets
from oncekey.config import RouteSettings, Settings
from oncekey.core.ledger import Ledger
from oncekey.webhooks.sources import Source

_KEY = "Idempotency-Key: try-1"


class Banner(NamedTuple):
    settings: Settings
    port: int
    has_api: bool = False
    has_console: bool = False
    secret: str | None = None
    """Of the API key that was made for trying things out."""
    webhook: Source | None = None
    """The one that was made for it."""
    admin_secret: str | None = None
    """Of an admin's key that was made for it."""
    cluster: tuple[str, ...] = ()
    """What there is to say about a ledger on several machines."""

    @property
    def url(self) -> str:
        return f"http://{_host_of(self.settings.server.host)}:{self.port}"

    def text(self, grpc_port: int | None = None) -> str:
        settings = self.settings
        parts = (settings.app.target, settings.app.workflows, *map(_shown, settings.upstreams))
        served = " and ".join(filter(None, parts))
        lines = [
            f"OnceKey serves {served or self._otherwise()} on {self.url}",
            f"Ledger: {without_secrets(settings.store.url)}",
            *self.cluster,
            *self._callers(),
            *self._webhooks(),
            *self._console(),
        ]
        if grpc_port is not None:
            lines.append(f"gRPC: {_host_of(settings.server.host)}:{grpc_port}")
        tries = [*self._tries(), *self._examples()]
        if tries:
            lines += ["", "Try it:", *(f"  {each}" for each in tries)]
        return "\n".join([*lines, "", "Ctrl-C stops it."])

    def _otherwise(self) -> str:
        """Routes that nothing is behind are only decided about."""
        return "the API" if self.has_api else "decisions for gateways"

    def _callers(self) -> list[str]:
        lines = []
        if self.has_api:
            lines.append(f"API: {self.url}/api, described by {self.url}/openapi.json")
        if self.secret is not None:
            lines.append(f"API key of the tenant default, good for 24 hours: {self.secret}")
        elif self.has_api:
            lines.append("Its callers need a key: oncekey apikeys create")
        elif _needs_keys(self.settings):
            lines.append("Callers need a key: oncekey apikeys create")
        return lines

    def _webhooks(self) -> list[str]:
        made = self.webhook
        if made is None:
            return []
        return [
            f"Webhook for {made.provider}: {self.url}/api/v1/webhooks/{made.provider}/{made.id}"
        ]

    def _console(self) -> list[str]:
        if not self.has_console:
            return []
        if self.admin_secret is not None:
            key = f"{self.admin_secret}, good for 24 hours"
        else:
            key = "a key of an admin: oncekey apikeys create --admin"
        return [f"Console: {self.url}/console, to sign in with {key}"]

    def _tries(self) -> list[str]:
        route = _route_to_try(self.settings, self.secret)
        if route is None:
            return []
        body = route.example or "{}"
        curl = partial(_curl, self.url, route, self.secret if _is_known_by_key(route) else None)
        return [
            f"{curl(body)}    # runs, the first time",
            f"{curl(body)}    # same key: the stored answer",
            f"{curl(_other(body))}    # other body: 422",
        ]

    def _examples(self) -> list[str]:
        told = {
            "{url}": self.url,
            "{api_key}": self.secret or "API_KEY",
            "{webhook}": self.webhook.id if self.webhook is not None else "WEBHOOK",
            "{oncekey}": shlex.quote(sys.argv[0]),
        }
        # What another process would do does not come to a ledger inside of this one.
        alone = self.settings.store.url.startswith("memory:")
        return [
            _filled(each, told)
            for each in self.settings.app.examples
            if not (alone and "{oncekey}" in each)
        ]


def cluster_lines(ledger: Ledger) -> tuple[str, ...]:
    """Where Restate is, how it reaches this process, and who serves what all of them share."""
    describe = getattr(ledger.store, "describe", None)
    told: tuple[str, ...] = () if describe is None else describe()
    return told


def _filled(example: str, told: dict[str, str]) -> str:
    for name, value in told.items():
        example = example.replace(name, value)
    return example


def _shown(upstream: str) -> str:
    return f"the upstream {upstream}"


def _needs_keys(settings: Settings) -> bool:
    """Whether there is no other way for callers of the edge to say who they are."""
    others = settings.auth.jwt is not None or settings.auth.gateway.trusted
    return not others and any(
        _is_known_by_key(each) or not settings.app.target for each in settings.routes
    )


def _is_known_by_key(route: RouteSettings) -> bool:
    """Whether its callers say who they are. Deliveries are signed instead."""
    return (
        route.upstream is not None and route.identity != "optional" and route.policy != "REQUIRED_B"
    )


def _route_to_try(settings: Settings, secret: str | None) -> RouteSettings | None:
    """The first route with an example, else the first that can be tried without one."""
    fit = [
        each
        for each in settings.routes
        if "{" not in each.path
        and (each.upstream is not None or settings.app.target)
        and (secret is not None or not _is_known_by_key(each))
        and (each.methods is None or "POST" in each.methods)
        and each.policy not in {"PROHIBITED", "REQUIRED_B", "HANDLER_INTERNAL_C"}
        and each.level != "platform"
    ]
    return next((each for each in fit if each.example), fit[0] if fit else None)


def _curl(url: str, route: RouteSettings, secret: str | None, body: str) -> str:
    lines = [_KEY, "Content-Type: application/json"]
    if secret is not None:
        lines.insert(0, f"Authorization: Bearer {secret}")
    words = ["curl", "-i", f"{url}{route.path}"]
    for line in lines:
        words += ["-H", line]
    return shlex.join([*words, "-d", body])


def _other(body: str) -> str:
    """A body that is not the same by value: one number or text of it is changed."""
    try:
        value = json.loads(body)
    except ValueError:
        return body + " "
    if not isinstance(value, dict):
        return json.dumps([value])
    for name, old in value.items():
        if isinstance(old, int) and not isinstance(old, bool):
            return json.dumps({**value, name: old + 1})
    return json.dumps({**value, "note": "another"})


def _host_of(host: str) -> str:
    if host in {"0.0.0.0", "::"}:  # noqa: S104 - what to open, not what to listen on
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
