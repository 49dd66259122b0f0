"""Values of any size, as admins see them: whole up to a bound, the beginning of what is larger."""

from __future__ import annotations

from typing import NamedTuple

from oncekey.core.execution import Execution, Promise, Status
from oncekey.durable.failure import decode_failure, encode_failure
from oncekey.durable.shapes import Shape, json_of, shape_of_execution, shape_of_promise

LARGEST = 64 << 10
"""Bytes of one value."""


class Head(NamedTuple):
    text: str
    whole: bool


def head_of(body: bytes | None, most: int = LARGEST) -> Head:
    """JSON as text, and whether that is all of it."""
    body = body or b"null"
    # A character that is cut in two is left out.
    return Head(body[:most].decode(errors="ignore"), len(body) <= most)


def value_of(body: bytes | None) -> bytes | None:
    """The JSON itself, or the beginning of its text, as JSON again."""
    return body if body is None or len(body) <= LARGEST else json_of(head_of(body).text)


def failure_of(body: bytes | None) -> bytes | None:
    """A failure without its data, when that is large."""
    if body is None or len(body) <= LARGEST:
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
