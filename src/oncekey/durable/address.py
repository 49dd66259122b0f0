"""How a promise is addressed from outside: by id, by key, by token, or by workflow and name."""

from __future__ import annotations

from typing import NamedTuple

from oncekey.core.errors import InvalidInput


class ById(NamedTuple):
    """`wf_…:name`, or `pr_…:name` for a promise without a workflow."""

    id: str


class ByKey(NamedTuple):
    key: str


class ByToken(NamedTuple):
    token: str


class ByName(NamedTuple):
    """The promise of that name in the workflow of that id."""

    execution_id: str
    name: str


Address = ById | ByKey | ByToken | ByName


def address_of(text: str) -> Address:
    """`id:…`, `key:…` or a token (`ct_…`), as the API and the command line take it."""
    kind, separator, rest = text.partition(":")
    if kind == "id" and rest:
        return ById(rest)
    if kind == "key" and rest:
        return ByKey(rest)
    if not separator and text.startswith("ct_"):
        return ByToken(text)
    raise InvalidInput(f"{text!r} does not name a promise; write id:…, key:… or a token ct_…")
