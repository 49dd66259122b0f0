"""Another service's OpenAPI document, with what the edge adds to it. Nothing that stands in it is
taken away or said otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from oncekey.core.errors import InvalidInput
from oncekey.core.retention import DEFAULT_CLASSES
from oncekey.edge.document.contract import (
    PROBLEM,
    REF,
    Part,
    is_kept,
    marks_of,
    parameters_of,
    problems_of,
)
from oncekey.edge.document.references import is_elsewhere, list_in, object_in, resolved
from oncekey.edge.policy import EdgeRoute, Table
from oncekey.wire import openapi
from oncekey.wire.openapi import by_status, problem_response, replay_headers

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_KIND = "application/problem+json"
_CODES = "x-idempotency-problems"


class Annotated(NamedTuple):
    document: Part
    uncovered: list[str]
    """Operations that no route covers, as `POST /orders`."""


def annotate(
    document: Any,
    routes: Iterable[EdgeRoute],
    *,
    base: str = "",
    retention: Mapping[str, float] = DEFAULT_CLASSES,
) -> Annotated:
    """`document` is OpenAPI 3.0 or 3.1 and stays as it is. Raises `InvalidInput` for others.

    `base` is the path of the service's URL, which callers of the edge do not send.
    """
    whole: Part = _copied(_checked(document))
    table = Table(routes)
    covered, uncovered = 0, []
    for each in _operations_in(whole):
        route = table.find(each.method.upper(), _without(base, each.path))
        if route is None:
            uncovered.append(f"{each.method.upper()} {each.path}")
        else:
            covered += 1
            _Operation(whole, each).annotate(route, retention)
    if covered:
        schemas = object_in(object_in(whole, "components"), "schemas")
        schemas.setdefault(PROBLEM, openapi.PROBLEM)
    return Annotated(whole, uncovered)


class _Found(NamedTuple):
    method: str
    path: str
    """As the service knows it; a parameter in it fits where a segment does."""
    operation: Part
    shared: list[Any]
    """Parameters that all operations of the path have."""


def _operations_in(document: Part) -> Iterator[_Found]:
    paths = object_in(document, "paths", make=False)
    for path in [each for each in paths if each.startswith("/")]:
        if is_elsewhere(paths[path]):
            continue
        item = paths[path] = _copied(resolved(document, paths[path]))
        for method in _METHODS:
            operation = item.get(method)
            if isinstance(operation, dict):
                base = _base_of(operation, item, document)
                yield _Found(method, base + path, operation, list_in(item, "parameters"))


class _Operation:
    """One operation of the document, which is changed in place."""

    def __init__(self, document: Part, found: _Found) -> None:
        self._document = document
        self._operation = found.operation
        self._shared = found.shared

    def annotate(self, route: EdgeRoute, kept: Mapping[str, float]) -> None:
        self._operation.update(marks_of(route, kept))
        for parameter in parameters_of(route):
            self._take(parameter)
        responses = object_in(self._operation, "responses")
        for status, response in list(responses.items()):
            if is_kept(route, status) and not is_elsewhere(response):
                _add_headers(self._own(responses, status))
        for number, codes in by_status(problems_of(route)).items():
            self._add_problems(responses, number, codes)

    def _take(self, parameter: Part) -> None:
        """Unless the service has described it by itself."""
        own = list_in(self._operation, "parameters")
        for each in (*own, *self._shared):
            known = {} if is_elsewhere(each) else resolved(self._document, each)
            name = str(known.get("name", "")).lower()
            if known.get("in") == "header" and name == parameter["name"].lower():
                return
        self._operation["parameters"] = [*own, parameter]

    def _add_problems(self, responses: Part, number: int, codes: list[str]) -> None:
        status, answer = str(number), problem_response(number, codes, REF)
        if status not in responses:
            responses[status] = answer
        elif not is_elsewhere(responses[status]):
            response = self._own(responses, status)
            content = object_in(response, "content")
            content.setdefault(_KIND, answer["content"][_KIND])
            response[_CODES] = codes

    def _own(self, responses: Part, status: str) -> Part:
        """A response of this operation alone: others may refer to the same one."""
        found: Part = _copied(resolved(self._document, responses[status]))
        responses[status] = found
        return found


def _add_headers(response: Part) -> None:
    headers = object_in(response, "headers")
    known = {name.lower() for name in headers}
    for name, told in replay_headers().items():
        if name.lower() not in known:
            headers[name] = told


def _checked(document: Any) -> Part:
    if not isinstance(document, dict):
        raise InvalidInput("this is no OpenAPI document: it is not an object")
    version = str(document.get("openapi", ""))
    if not version.startswith(("3.0.", "3.1.")):
        found = f"OpenAPI {version}" if version else "not OpenAPI 3"
        raise InvalidInput(f"the document is {found[:40]}; write it as OpenAPI 3.0 or 3.1")
    return document


def _base_of(*parts: Part) -> str:
    """The path in front of all paths, from the first part that names servers."""
    for part in parts:
        servers = list_in(part, "servers")
        if servers and isinstance(servers[0], dict):
            url = str(servers[0].get("url", ""))
            for name, variable in object_in(servers[0], "variables", make=False).items():
                default = variable.get("default", "") if isinstance(variable, dict) else ""
                url = url.replace(f"{{{name}}}", str(default))
            return _path_of(url)
    return ""


def _without(base: str, path: str) -> str:
    base = base.rstrip("/")
    return path[len(base) :] if base and path.startswith(f"{base}/") else path


def _path_of(url: str) -> str:
    try:
        return urlsplit(url).path.rstrip("/")
    except ValueError:
        raise InvalidInput(f"the document names a server {url[:200]!r}, which is no URL") from None


def _copied(part: Any) -> Any:
    """A copy in which no two places share anything, with names that are text as in JSON."""
    match part:
        case dict():
            return {str(name): _copied(value) for name, value in part.items()}
        case list():
            return [_copied(value) for value in part]
        case _:
            return part
