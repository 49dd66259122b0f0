"""Where a handler of a Restate service is, as the URL of an upstream says."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote

from oncekey.core.errors import InvalidInput
from oncekey.edge.rewrite import PROJECT, SUBJECT, TENANT
from oncekey.stores.restate.place import read_place
from oncekey.wire.route import Route
from oncekey.wire.rule import Rule

SCHEME = "restate://"
FORM = "restate://host:8080/Service/handler or restate://host:8080/Object/{id}/handler"
# Of the caller; all others are parameters of the path of a route.
CALLERS = {"tenant": TENANT, "project": PROJECT, "subject": SUBJECT}

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9._-]*")
_TEMPLATE = re.compile(r"(?:\{[A-Za-z_]\w*\}|[A-Za-z0-9._~:@-])+", re.ASCII)
_PARAMETER = re.compile(r"\{(\w+)\}")
_OWN = "oncekey."


class ServicePlace(NamedTuple):
    ingress: tuple[str, ...]
    admin: tuple[str, ...]
    service: str
    key: str
    """Which object is called, with parameters in braces; empty for a service that has none."""
    handler: str

    @property
    def parameters(self) -> list[str]:
        """Those that the path of a route must have."""
        return [name for name in _PARAMETER.findall(self.key) if name not in CALLERS]


def is_service(url: str) -> bool:
    return url.startswith(SCHEME)


def read_service(url: str) -> ServicePlace:
    """Raises `InvalidInput`: what is wrong with a URL, to be told after the name of it."""
    hosts, _, rest = url.removeprefix(SCHEME).partition("/")
    path, _, query = rest.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    if options.keys() - {"admin"}:
        raise InvalidInput("has an option that is not admin=host:9070, the only one there is")
    place = read_place(f"{SCHEME}{hosts}?{query}")
    names = unquote(path).split("/")
    if len(names) not in {2, 3} or not _TEMPLATE.fullmatch("".join(names[1:-1]) or "-"):
        raise InvalidInput(f"is {url!r}, not of the form {FORM}")
    service, handler = names[0], names[-1]
    for name in (service, handler):
        if not _NAME.fullmatch(name):
            raise InvalidInput(f"is {url!r}: {name!r} is no name of a service or a handler")
    if service.startswith(_OWN):
        raise InvalidInput(f"names {service}, which is OnceKey's own; name a service of yours")
    return ServicePlace(place.ingress, place.admin, service, "".join(names[1:-1]), handler)


class Target:
    """What the ingress is asked for, by what the edge was asked for on one route."""

    def __init__(self, place: ServicePlace, path: str) -> None:
        self._start = f"/restate/call/{place.service}/"
        self._key = place.key
        self._handler = place.handler
        self._pattern = _named(path)

    def of(self, target: bytes, headers: dict[bytes, bytes]) -> bytes:
        raw, mark, query = target.partition(b"?")
        if not self._key:
            return f"{self._start}{self._handler}".encode() + mark + query
        found = self._pattern.fullmatch(unquote(raw.decode("ascii")))
        values = {} if found is None else found.groupdict()
        for name, line in CALLERS.items():
            values.setdefault(name, headers.get(line, b"").decode("ascii"))
        key = _PARAMETER.sub(lambda each: values[each[1]], self._key)
        return f"{self._start}{quote(key, safe='')}/{self._handler}".encode() + mark + query


def _named(path: str) -> re.Pattern[str]:
    """The pattern of a route, with the names of its parameters."""
    names = iter(re.findall(r"\{(\w+)(?::path)?\}", path))
    expression = Route(path, Rule()).pattern.pattern
    return re.compile(
        re.sub(r"\[\^/\]\+|(?<!\\)\.\*", lambda each: f"(?P<{next(names)}>{each[0]})", expression)
    )
