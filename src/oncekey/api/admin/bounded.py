"""Values of any size, as admins see them: whole up to a bound, the beginning of what is larger."""

from __future__ import annotations

import re
from typing import NamedTuple

from oncekey.core.execution import Execution, Promise, Status
from oncekey.durable.failure import decode_failure, encode_failure
from oncekey.durable.shapes import Shape, json_of, shape_of_execution, shape_of_promise

LARGEST = 64 << 10
"""Bytes of one value."""
# Whoever reads an answer needs room for it: most readers of JSON go down a thousand levels at most.
_DEEPEST = 200
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_BRACKET = re.compile(rb"[\[\]{}]")


class Head(NamedTuple):
    text: str
    whole: bool


def head_of(body: bytes | None, most: int = LARGEST) -> Head:
    """JSON as text, and whether that is all of it."""
    body = body or b"null"
    # A character that is cut in two is left out.
    return Head(body[:most].decode(errors="ignore"), len(body) <= most)


def _is_easy(body: bytes) -> bool:
    """Whether JSON is neither too large nor nested too deeply to be part of an answer."""
    if len(body) > LARGEST:
        return False
    if body.count(b"[") + body.count(b"{") <= _DEEPEST:
        return True
    level = 0
    for bracket in _BRACKET.findall(_STRING.sub(b"", body)):
        level += 1 if bracket in b"[{" else -1
        if level > _DEEPEST:
            return False
    return True


def value_of(body: bytes | None) -> bytes | None:
    """The JSON itself, or the beginning of its text, as JSON again."""
    return body if body is None or _is_easy(body) else json_of(head_of(body).text)


def failure_of(body: bytes | None) -> bytes | None:
    """A failure without its data, when that is large or deep."""
    if body is None or _is_easy(body):
        return body
    failure = decode_failure(body)
    failure.data = None
    return encode_failure(failure)


def shape_of_any_execution(execution: Execution) -> Shape:
    succeeded = execution.status is Status.SUCCEEDED
    bounded = execution._replace(
        input=value_of(execution.input) or b"",
        result=(value_of if succeeded else failure_of)(execution.result),
    )
    return {
        "tenant": execution.tenant,
        **shape_of_execution(bounded),
        "whole": (bounded.input, bounded.result) == (execution.input, execution.result),
    }


def shape_of_any_promise(promise: Promise) -> Shape:
    body = value_of(promise.body)
    return {
        "tenant": promise.tenant,
        **shape_of_promise(promise._replace(body=body)),
        "whole": body == promise.body,
    }
