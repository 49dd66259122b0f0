"""The decision about a request, shared by the proxy and by `/edge/decide`. Pure: a route, an
identity and the lines of a header in, a value out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from oncekey.core.errors import KeyInvalid
from oncekey.core.model import make
from oncekey.core.scope import PLATFORM_LEVEL, TENANT_LEVEL, namespace_of
from oncekey.edge.identity.known import Known
from oncekey.edge.policy import EdgeRoute
from oncekey.edge.rewrite import namespaced
from oncekey.wire.headers import key_in
from oncekey.wire.problem import Response, problem


class Pass(NamedTuple):
    """Let it through without protection; a key that came with it is not passed on."""

    namespace: str


class Protect(NamedTuple):
    """Let it through once for this key."""

    namespace: str
    raw: str
    key: str
    """With the namespace in front: what the service behind sees."""


class Refuse(NamedTuple):
    response: Response


Verdict = Pass | Protect | Refuse


def decide(route: EdgeRoute, known: Known, key_lines: Sequence[bytes]) -> Verdict:
    """`key_lines`: the values of every Idempotency-Key header of the request."""
    namespace = namespace_at(route, known)
    if not key_lines and route.passes:
        # Most requests have no key, and need none.
        return make(Pass, (namespace,))
    match route.policy:
        case "HANDLER_INTERNAL_C":
            return Pass(namespace)
        case "REQUIRED_B":
            return Refuse(problem("identifier-missing"))
        case "REQUIRED_A" | "ACCEPTED" | "PROHIBITED":
            return _by_key(route, namespace, key_lines)


def _by_key(route: EdgeRoute, namespace: str, key_lines: Sequence[bytes]) -> Verdict:
    raw = key_in(key_lines, route.rule)
    if raw is None:
        return Pass(namespace)
    if isinstance(raw, Response):
        return Refuse(raw)
    try:
        return make(Protect, (namespace, raw, namespaced(namespace, raw)))
    except KeyInvalid as error:
        return Refuse(problem("idempotency-key-invalid", str(error)))


def namespace_at(route: EdgeRoute, known: Known) -> str:
    """Whose keys they are on this route: those of tenants and of the platform have no project."""
    if route.level == "project":
        return known.namespace
    project = TENANT_LEVEL if route.level == "tenant" else PLATFORM_LEVEL
    return namespace_of(known.identity.tenant, project, known.identity.subject)
