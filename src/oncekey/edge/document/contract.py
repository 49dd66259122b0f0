"""What a route promises to whoever reads OpenAPI: what a key is, how long answers are kept, and
every problem there can be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from oncekey.core.finality import is_final_status
from oncekey.edge.policy import EdgeRoute
from oncekey.wire.openapi import by_status, codes_of, key_parameter, problem_response
from oncekey.wire.problem import codes

Part = dict[str, Any]

PROBLEM = "OnceKeyProblem"
"""The name of the schema that problems have in a document."""

_STATUS = re.compile(r"[1-5]([0-9]{2}|[Xx]{2})")
REF = {"$ref": f"#/components/schemas/{PROBLEM}"}
IDENTITY = frozenset({"unauthorized", "identity-unavailable"})
DELIVERY = frozenset(
    {
        "identifier-missing",
        "signature-invalid",
        "secrets-unavailable",
        "delivery-in-flight",
        "ledger-unavailable",
        "outcome-unknown",
        "request-too-large",
    }
)
UPSTREAM = frozenset(
    {
        "upstream-unreachable",
        "upstream-uncertain",
        "upstream-timeout",
        "request-timeout",
        "request-incomplete",
    }
)


def marks_of(route: EdgeRoute, kept: Mapping[str, float]) -> Part:
    """The policy and the retention of a route; `kept` has seconds by class."""
    keeps = route.keyed or route.policy == "REQUIRED_B"
    name = route.rule.retention if keeps else None
    return {
        "x-idempotency-policy": route.policy,
        "x-idempotency-retention": retention_of(name, kept),
    }


def retention_of(name: str | None, kept: Mapping[str, float]) -> Part:
    """A class and its seconds: 0 where nothing is kept, null where nobody has set it so far."""
    if name is None:
        return {"class": None, "seconds": 0}
    seconds = kept.get(name)
    whole = seconds is not None and seconds == int(seconds)
    return {"class": name, "seconds": int(seconds or 0) if whole else seconds}


def parameters_of(route: EdgeRoute) -> list[Part]:
    return [key_parameter(route.rule)] if route.keyed else []


def problems_of(route: EdgeRoute) -> list[str]:
    """The codes of every problem that the edge itself may answer with on a route."""
    found = {"internal-error"}
    found |= DELIVERY if route.policy == "REQUIRED_B" else IDENTITY
    if "{" in route.path:
        # What no segment can hold is on no route.
        found |= {"not-found"}
    if route.upstream is not None:
        found |= UPSTREAM
    if route.keyed or route.policy == "PROHIBITED":
        found |= set(codes_of(route.rule))
    if route.keyed and route.uncertain != "rerun":
        found |= {"outcome-unknown"}
    return [code for code in codes() if code in found]


def responses_of(found: list[str]) -> dict[str, Part]:
    """Problem answers by status."""
    return {
        str(status): problem_response(status, types, REF)
        for status, types in by_status(found).items()
    }


def is_kept(route: EdgeRoute, status: str) -> bool:
    """Whether an answer of that status, or range of statuses such as `2XX`, may be a replay."""
    if not route.keyed or not _STATUS.fullmatch(status):
        return False
    number = int(status.upper().replace("X", "0"))
    return is_final_status(number, route.rule.store_server_errors)
