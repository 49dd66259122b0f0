"""Rules by path: `{name}` stands for one segment, a last `{name:path}` for the rest."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from oncekey.core.errors import ConfigurationError
from oncekey.wire.exchange import endpoint_of
from oncekey.wire.rule import Rule, rule_of

_PARAMETER = re.compile(r"\{([a-zA-Z_][a-zA-Z0-9_]*)(:path)?\}")


@dataclass(frozen=True)
class Route:
    """One path pattern with its rule."""

    path: str
    rule: Rule

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(_expression_of(self.path))


def route(path: str, **options: Any) -> Route:
    """A route with options: `route("/orders/{id}/pay", required=True, in_flight="attach")`."""
    found = Route(path, rule_of(None, **options))
    _ = found.pattern
    return found


class Routes:
    """The first route that fits a request decides; where none does, `default` holds."""

    def __init__(self, routes: Iterable[Route], default: Rule) -> None:
        self._routes = tuple(routes)
        self._default = default

    def find(self, method: str, path: str) -> tuple[Rule, str, str]:
        """The rule for a request, the endpoint its key belongs to, and what those who count call
        it: paths that no route names are all one to them."""
        for each in self._routes:
            if method in each.rule.methods and each.pattern.fullmatch(path):
                endpoint = endpoint_of(method, each.path)
                return each.rule, endpoint, endpoint
        return self._default, endpoint_of(method, path), f"{method} {{path}}"


def _expression_of(path: str) -> str:
    if not path.startswith("/"):
        raise ConfigurationError(f"route path {path!r} must start with '/'")
    expression, end = "", 0
    for found in _PARAMETER.finditer(path):
        rest = bool(found[2])
        if rest and found.end() != len(path):
            raise ConfigurationError(f"route path {path!r}: {found[0]} can only stand at the end")
        expression += re.escape(path[end : found.start()]) + (".*" if rest else "[^/]+")
        end = found.end()
    if "{" in path[end:] or "}" in path[end:]:
        raise ConfigurationError(f"route path {path!r}: write {{name}} or a last {{name:path}}")
    return expression + re.escape(path[end:])
