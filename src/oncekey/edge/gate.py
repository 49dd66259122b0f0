"""`/edge/decide`: the decision for gateways that carry the bytes themselves.

A gateway tells which request it asks about: nginx in X-Original-*, Caddy and Traefik in
X-Forwarded-*, Envoy in the method and the path of the request itself. What a client adds to that
makes it two stories, and none of them is believed.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from oncekey.core.events import Observer
from oncekey.core.model import make
from oncekey.edge.asked import Asked
from oncekey.edge.cleaning import lines_of_identity
from oncekey.edge.decide import Pass, Protect, Refuse, decide
from oncekey.edge.identity.identities import Known
from oncekey.edge.policy import EdgeRoute, Policy, Table
from oncekey.edge.proxy import ANONYMOUS
from oncekey.edge.target import path_of
from oncekey.edge.telling import tell_verdict
from oncekey.wire.headers import KEY
from oncekey.wire.problem import Response, forbidden, problem
from oncekey.wire.replies import nothing

DECIDE = "/edge/decide"
POLICY = b"x-idempotency-policy"

_BEFORE_PATH = len(DECIDE)
_IN_PATH = DECIDE.encode() + b"/"
_PLACE_OF = {
    b"x-original-method": 0,
    b"x-original-uri": 1,
    b"x-forwarded-method": 2,
    b"x-forwarded-uri": 3,
    KEY: 4,
}.get
_METHOD = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,32}").fullmatch
_ONLY_403 = b"refuse=403"
# Envoy replaces lines of a request, but removes none unless it is told to.
_NO_KEY = (b"x-envoy-auth-headers-to-remove", KEY)

_WAYS = (
    "let the gateway send X-Original-Method and X-Original-URI, or X-Forwarded-Method and "
    "X-Forwarded-Uri, once each, and remove what its client sends in them"
)
_NOT_TOLD = f"the request to decide about is not told whole; {_WAYS}"
_TOLD_TWICE = f"the request to decide about is told twice; {_WAYS}"
_NO_METHOD = "the method of the request to decide about is none"
_NO_PATH = (
    "the path of the request to decide about is refused: it starts with '/', and has no empty "
    "segments, no '.' or '..', no encoded slash, no backslash, no control bytes, nothing encoded "
    "twice and nothing that must be encoded"
)


class Original(NamedTuple):
    """The request that a gateway asks about."""

    method: str
    target: bytes
    key_lines: list[bytes]


def gate(
    table: Table, known: Known | Response, asked: Asked, observe: Observer | None = None
) -> Response:
    """The answer to a gateway: 200 with the lines to send on, or the answer for its client.

    `known` is who calls, `ANONYMOUS` where nobody says, or the answer to credentials that are not
    believed. With `refuse=403` every refusal but a 401 is a 403, for gateways that know no others;
    asked again without it, the answer is the one for the client.
    """
    original = original_of(asked)
    if isinstance(original, Response):
        answer = original
    else:
        answer = _answer(table, known, original, observe)
    if asked.path != DECIDE:
        return _for_envoy(answer)
    return forbidden(answer) if asked.query == _ONLY_403 else answer


def original_of(asked: Asked) -> Original | Response:
    """The request that is told, or the answer to a gateway that does not tell it well."""
    if asked.again is None:
        return _read(asked)
    repeat, values = asked.again
    if repeat.told is None:
        original = _read(asked)
        if isinstance(original, Response):
            return original
        repeat.told = (original.method, original.target)
    return make(Original, (*repeat.told, repeat.keys(values)))


def _read(asked: Asked) -> Original | Response:
    told: list[bytes | None] = [None, None, None, None]
    key_lines: list[bytes] = []
    for name, value in asked.headers:
        place = _PLACE_OF(name)
        if place is None:
            continue
        if place == 4:
            key_lines.append(value)
        elif told[place] is None:
            told[place] = value
        else:
            return problem("invalid-input", _TOLD_TWICE)
    return _told_once(asked, told, key_lines)


def _told_once(
    asked: Asked, told: list[bytes | None], key_lines: list[bytes]
) -> Original | Response:
    method, target, other_method, other_target = told
    if method is None and target is None:
        method, target, other_method, other_target = other_method, other_target, None, None
    if asked.path != DECIDE:
        other_method, other_target = method, target
        method = asked.method.encode()
        target = asked.target[_BEFORE_PATH:] if asked.raw_path.startswith(_IN_PATH) else b""
    if other_method is not None or other_target is not None:
        return problem("invalid-input", _TOLD_TWICE)
    if not method or not target:
        return problem("invalid-input", _NOT_TOLD)
    if not _METHOD(method):
        return problem("invalid-input", _NO_METHOD)
    return make(Original, (method.decode("ascii"), target, key_lines))


def _answer(
    table: Table, known: Known | Response, original: Original, observe: Observer | None
) -> Response:
    path = path_of(original.target)
    if path is None:
        return problem("invalid-input", _NO_PATH)
    if isinstance(known, Response):
        return known
    route = table.find(original.method, path)
    if known is ANONYMOUS and not (route is not None and route.anonymous):
        # Also where there is no route: which there are is not for everybody to know.
        return problem("unauthorized")
    if route is None:
        # Fail closed: what no route tells about goes nowhere.
        return problem("not-found")
    if (known.role == "admin") != (route.level == "platform"):
        return problem("unauthorized")
    verdict = decide(route, known, original.key_lines)
    if observe is not None:
        tell_verdict(observe, route, original.method, original.key_lines, known, verdict)
    return verdict.response if isinstance(verdict, Refuse) else _let_in(route, verdict)


def _let_in(route: EdgeRoute, verdict: Pass | Protect) -> Response:
    answer = _letting_in(verdict.namespace, route.policy)
    if isinstance(verdict, Pass):
        return answer
    status, lines, body = answer
    return make(Response, (status, (*lines, (KEY, verdict.key.encode("ascii"))), body))


def _for_envoy(answer: Response) -> Response:
    names = [name for name, _ in answer.headers]
    if POLICY not in names or KEY in names:
        return answer
    return answer._replace(headers=(*answer.headers, _NO_KEY))


@lru_cache(maxsize=4096)
def _letting_in(namespace: str, policy: Policy) -> Response:
    """The lines that replace what the client sent in them. Without a key there is none for it,
    because an empty one is a key to some."""
    return nothing((*lines_of_identity(namespace), (POLICY, policy.encode())))
