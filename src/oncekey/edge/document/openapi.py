"""The edge's own OpenAPI document, made of its routes: each with what a key is there, and with the
ways to get its answer once more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.metadata import version

from oncekey.core.retention import DEFAULT_CLASSES
from oncekey.edge.document.contract import (
    PROBLEM,
    Part,
    marks_of,
    parameters_of,
    problems_of,
    responses_of,
)
from oncekey.edge.document.described import ANY, Described, decisions, operations, recovery, webhook
from oncekey.edge.policy import EdgeRoute
from oncekey.wire import openapi

ADMIN = "admin"
"""The security scheme of routes that belong to the platform."""

_PARAMETER = re.compile(r"\{(\w+)(:path)?\}")
# Those that OpenAPI knows; a route may have others, which no document can show.
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_TOLD = {
    "key": "The Idempotency-Key as it was sent.",
    "idempotency_key": "The Idempotency-Key as it was sent.",
    "operation_id": "As `X-Operation-Id` told it.",
    "provider": "Such as `stripe`.",
    "webhook_id": "`wh_` and letters that say nothing.",
}


def document_of(
    routes: Iterable[EdgeRoute],
    *,
    retention: Mapping[str, float] = DEFAULT_CLASSES,
    schemes: Mapping[str, Part] | None = None,
    decides: bool = True,
    title: str = "OnceKey edge",
) -> Part:
    """`retention` has seconds by class; `schemes` are the security schemes there are, of which that
    named `admin` is for routes of the platform, and any other for the rest."""
    schemes = schemes or {}
    paths = _Paths([{name: []} for name in schemes if name != ADMIN])
    admins: list[Part] = [{name: []} for name in schemes if name == ADMIN]
    for each in routes:
        _describe(each, paths, admins, retention)
    own = [*operations(), webhook(retention), *(decisions() if decides else ())]
    for described in own:
        paths.add(described, _TOLD)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": title,
            "summary": "Every route, with what an Idempotency-Key is there.",
            "version": version("oncekey"),
        },
        "paths": paths.items,
        "components": {
            "schemas": {PROBLEM: openapi.PROBLEM},
            "securitySchemes": dict(schemes),
        },
    }


class _Paths:
    """Paths of a document. The first one of a path and method counts, as in the edge's table."""

    def __init__(self, callers: list[Part]) -> None:
        self.callers = callers
        self.items: dict[str, Part] = {}
        self._shown: dict[str, str] = {}
        self._ids: set[str] = set()

    def add(self, described: Described, told: Mapping[str, str]) -> None:
        method, path, operation = described
        # Templates that differ only in the names of their parameters are one path to OpenAPI.
        shape = _PARAMETER.sub("{}", path)
        shown = self._shown.setdefault(shape, _PARAMETER.sub(r"{\1}", path))
        item = self.items.setdefault(shown, {})
        if method.lower() in item:
            return
        segments = [
            _segment(found[1], told.get(found[1], ""), rest=f"{{{found[1]}:path}}" in path)
            for found in _PARAMETER.finditer(shown)
        ]
        item[method.lower()] = {
            "operationId": self._id_of(method, shown),
            "security": self.callers,
            **operation,
            "parameters": [*segments, *operation.get("parameters", [])],
        }

    def _id_of(self, method: str, path: str) -> str:
        words = re.findall(r"[A-Za-z0-9._~-]+", _PARAMETER.sub(r"by-\1", path))
        plain = "-".join([method.lower(), *words])
        # Paths as different as /a/b and /a-b come out alike.
        names = (plain, *(f"{plain}-{number}" for number in range(2, len(self._ids) + 2)))
        found = next(name for name in names if name not in self._ids)
        self._ids.add(found)
        return found


def _describe(
    route: EdgeRoute, paths: _Paths, admins: list[Part], kept: Mapping[str, float]
) -> None:
    security = _security_of(route, paths.callers, admins)
    for method in _METHODS:
        if method in route.rule.methods:
            operation = {**_operation_of(route, method, kept), "security": security}
            paths.add(Described(method, route.path, operation), {})
    if route.keyed:
        taken = {found[1] for found in _PARAMETER.finditer(route.path)}
        name = "idempotency_key" if "key" in taken else "key"
        path = f"{route.path}/by-idempotency-key/{{{name}}}"
        what = route.title or route.path
        for each in recovery(path, f"{what!r} by its key"):
            operation = {**each.operation, "security": security}
            paths.add(each._replace(operation=operation), {name: _TOLD[name]})


def _operation_of(route: EdgeRoute, method: str, kept: Mapping[str, float]) -> Part:
    answer: Part = {"description": "The answer of the service behind."}
    if route.keyed:
        answer["description"] += " A retry gets it again."
        answer["headers"] = openapi.replay_headers()
    operation: Part = {
        "summary": route.title or f"{method} {route.path}",
        **marks_of(route, kept),
        "parameters": parameters_of(route),
        "responses": {"2XX": answer, **responses_of(problems_of(route)), "default": answer},
    }
    if method in _WITH_BODY:
        operation["requestBody"] = ANY
    return operation


def _security_of(route: EdgeRoute, callers: list[Part], admins: list[Part]) -> list[Part]:
    if route.policy == "REQUIRED_B":
        return []
    if route.level == "platform":
        return admins
    return [*callers, {}] if route.anonymous else callers


def _segment(name: str, told: str, *, rest: bool) -> Part:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": told or ("Any number of segments." if rest else "One segment of the path."),
        "schema": {"type": "string"},
    }
