"""What `oncekey serve` says when it starts: where it listens, and three requests to try."""

from __future__ import annotations

import json
import shlex

from oncekey.compose.address import without_secrets
from oncekey.config import RouteSettings, Settings

_KEY = "Idempotency-Key: try-1"


def banner_of(settings: Settings, port: int) -> str:
    url = f"http://{_host_of(settings.server.host)}:{port}"
    lines = [
        f"OnceKey serves {settings.app.target} on {url}",
        f"Ledger: {without_secrets(settings.store.url)}",
    ]
    route = _route_to_try(settings)
    if route is not None:
        body = route.example or "{}"
        lines += [
            "",
            "Try it:",
            f"  {_curl(url, route, body)}    # runs",
            f"  {_curl(url, route, body)}    # same key: the stored answer",
            f"  {_curl(url, route, _other(body))}    # other body: 422",
        ]
    return "\n".join([*lines, "", "Ctrl-C stops it."])


def _route_to_try(settings: Settings) -> RouteSettings | None:
    """The first route with an example, else the first that can be tried without one."""
    fit = [
        each
        for each in settings.routes
        if "{" not in each.path
        and (each.methods is None or "POST" in each.methods)
        and each.policy != "PROHIBITED"
    ]
    return next((each for each in fit if each.example), fit[0] if fit else None)


def _curl(url: str, route: RouteSettings, body: str) -> str:
    content = "Content-Type: application/json"
    words = ["curl", "-i", f"{url}{route.path}", "-H", _KEY, "-H", content, "-d", body]
    return shlex.join(words)


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
