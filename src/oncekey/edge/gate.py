"""`/edge/decide`: the decision for gateways that carry the bytes themselves.

A gateway tells which request it asks about: nginx in X-Original-*, Caddy and Traefik in
X-Forwarded-*, Envoy in the method and the path of the request itself. What a client adds to that
makes it two stories, and none of them is believed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from oncekey.edge.asked import Asked
from oncekey.edge.cleaning import lines_of_identity
from oncekey.edge.decide import Pass, Protect, Refuse, decide
from oncekey.edge.identity import Known
from oncekey.edge.policy import EdgeRoute, Table
from oncekey.edge.proxy import ANONYMOUS
from oncekey.edge.target import path_of
from oncekey.wire.headers import KEY
from oncekey.wire.problem import Response, forbidden, problem
from oncekey.wire.replies import nothing

DECIDE = "/edge/decide"
POLICY = b"x-idempotency-policy"

_BEFORE_PATH = len(DECIDE)
_IN_PATH = DECIDE.encode() + b"/"
_PLACES = {
    b"x-original-method": 0,
    b"x-original-uri": 1,
    b"x-forwarded-method": 2,
    b"x-forwarded-uri": 3,
}
_METHOD = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,32}").fullmatch
_ONLY_403 = b"refuse=403"

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


def gate(table: Table, known: Known | Response, asked: Asked) -> Response:
    """The answer to a gateway: 200 with the lines to send on, or the answer for its client.

    `known` is who calls, `ANONYMOUS` where nobody says, or the answer to credentials that are not
    believed. With `refuse=403` every refusal but a 401 is a 403, for gateways that know no others;
    asked again without it, the answer is the one for the client.
    """
    original = original_of(asked)
    answer = original if isinstance(original, Response) else _answer(table, known, original)
    return forbidden(answer) if asked.query == _ONLY_403 and asked.path == DECIDE else answer


def original_of(asked: Asked) -> Original | Response:
    """The request that is told, or the answer to a gateway that does not tell it well."""
    told: list[bytes | None] = [None, None, None, None]
    key_lines: list[bytes] = []
    for name, value in asked.headers:
        if name == KEY:
            key_lines.append(value)
        elif name in _PLACES:
            place = _PLACES[name]
            if told[place] is not None:
                return problem("invalid-input", _TOLD_TWICE)
            told[place] = value
    if asked.path != DECIDE:
        told += _told_in_path(asked)
    return _one_of(told, key_lines)


def _told_in_path(asked: Asked) -> tuple[bytes, bytes]:
    target = asked.target[_BEFORE_PATH:] if asked.raw_path.startswith(_IN_PATH) else b""
    return asked.method.encode(), target


def _one_of(told: list[bytes | None], key_lines: list[bytes]) -> Original | Response:
    """`told`: a method and a target for each way to tell them, most of them empty."""
    ways = [told[place : place + 2] for place in range(0, len(told), 2)]
    found = [way for way in ways if way != [None, None]]
    if len(found) > 1:
        return problem("invalid-input", _TOLD_TWICE)
    method, target = found[0] if found else (None, None)
    if not method or not target:
        return problem("invalid-input", _NOT_TOLD)
    if not _METHOD(method):
        return problem("invalid-input", _NO_METHOD)
    return Original(method.decode("ascii"), target, key_lines)


def _answer(table: Table, known: Known | Response, original: Original) -> Response:
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
    verdict = decide(route, known.identity, original.key_lines)
    return verdict.response if isinstance(verdict, Refuse) else _let_in(route, verdict)


def _let_in(route: EdgeRoute, verdict: Pass | Protect) -> Response:
    """The lines that replace what the client sent in them; without a key there is no line for it,
    because an empty one is a key to some."""
    lines = [*lines_of_identity(verdict.namespace), (POLICY, route.policy.encode())]
    if isinstance(verdict, Protect):
        lines.append((KEY, verdict.key.encode("ascii")))
    return nothing(tuple(lines))
