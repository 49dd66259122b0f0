"""What a key means on a route. One policy per route; every route that changes things has one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from oncekey.core.model import Headers
from oncekey.edge.cleaning import from_upstream
from oncekey.edge.once import Once
from oncekey.edge.origin import Origin, origin_of
from oncekey.wire.exchange import endpoint_of
from oncekey.wire.route import Route
from oncekey.wire.rule import Key, Rule

Policy = Literal["REQUIRED_A", "REQUIRED_B", "ACCEPTED", "HANDLER_INTERNAL_C", "PROHIBITED"]
Level = Literal["project", "tenant", "platform"]
Uncertain = Literal["refuse", "rerun", "recover"]

KEYED: frozenset[Policy] = frozenset({"REQUIRED_A", "ACCEPTED"})
"""Those under which a client's key is looked at."""
RULE_KEYS: dict[Policy, Key] = {
    "REQUIRED_A": "required",
    "REQUIRED_B": "ignored",
    "ACCEPTED": "optional",
    "HANDLER_INTERNAL_C": "ignored",
    "PROHIBITED": "prohibited",
}


@dataclass(frozen=True)
class EdgeRoute:
    """One path pattern with its policy, and where its requests go."""

    path: str
    policy: Policy
    rule: Rule
    """`rule.methods` are the methods of the route; `rule.key` follows from the policy."""
    upstream: Any = None
    """An `Upstream`, or what stands for a service on Restate."""
    level: Level = "project"
    """`tenant` and `platform` put a sentinel where the project would be."""
    anonymous: bool = False
    """Whether a request without credentials is let in, as `client:anonymous`."""
    uncertain: Uncertain = "refuse"
    """What a retry gets when the upstream was asked and broke off."""
    source: str = ""
    """Of REQUIRED_B: the webhook whose provider calls this path."""
    title: str = ""
    """For the OpenAPI document."""

    def place(self, method: str) -> str:
        """What a key belongs to on this route."""
        return self._places.get(method) or endpoint_of(method, self.path)

    @cached_property
    def _places(self) -> dict[str, str]:
        return {method: endpoint_of(method, self.path) for method in self.methods}

    @cached_property
    def methods(self) -> frozenset[str]:
        """Whoever may be asked for something may be asked for its head."""
        named = self.rule.methods
        return named | {"HEAD"} if "GET" in named else named

    @cached_property
    def keyed(self) -> bool:
        return self.policy in KEYED

    @cached_property
    def origin(self) -> Origin:
        """Where its upstream is, as answers from there could tell."""
        return origin_of(self.upstream.address)

    @cached_property
    def cleaned(self) -> Once[Headers, Headers]:
        """The lines of an answer of its upstream, for the client."""
        tells: frozenset[bytes] = getattr(self.upstream, "tells", frozenset())
        return Once(lambda headers: from_upstream(headers, self.origin, tells))

    @cached_property
    def passes(self) -> bool:
        """Whether a request without a key is let through."""
        return self.policy not in {"REQUIRED_A", "REQUIRED_B"}

    @cached_property
    def short(self) -> bool:
        """Whether its requests are forwarded as they come: deliveries are verified first."""
        return self.upstream is not None and self.policy != "REQUIRED_B"


class Table:
    """The routes of the edge. The first that fits a request decides."""

    def __init__(self, routes: Iterable[EdgeRoute]) -> None:
        self.routes = tuple(routes)
        """Whether a request without credentials may have been let in somewhere."""
        self._patterns = [(Route(each.path, each.rule).pattern, each) for each in self.routes]
        self._plain = self._without_parameters()

    def find(self, method: str, path: str) -> EdgeRoute | None:
        plain = self._plain.get((method, path))
        if plain is not None:
            return plain
        for pattern, each in self._patterns:
            if method in each.methods and pattern.fullmatch(path):
                return each
        return None

    def matching(self, path: str) -> Iterator[EdgeRoute]:
        """Every route of a path, whatever its methods."""
        for pattern, each in self._patterns:
            if pattern.fullmatch(path):
                yield each

    def _without_parameters(self) -> dict[tuple[str, str], EdgeRoute]:
        """Paths that are found without trying patterns; only where no pattern before them fits."""
        found: dict[tuple[str, str], EdgeRoute] = {}
        for index, each in enumerate(self.routes):
            if "{" in each.path:
                continue
            for method in each.methods:
                before = self._patterns[:index]
                taken = any(method in r.methods and p.fullmatch(each.path) for p, r in before)
                if not taken:
                    found[method, each.path] = each
        return found
