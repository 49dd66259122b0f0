"""One look at a page: who looks, what for, and what the API of admins answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote, urlencode

import msgspec

from oncekey.console import exact
from oncekey.core.callers import Caller
from oncekey.core.sessions import Session
from oncekey.wire.problem import Response

_CONFLICT = 409


class Api(Protocol):
    """The API of admins, asked without a server between."""

    async def ask(
        self,
        caller: Caller,
        method: str,
        path: str,
        *,
        query: bytes = b"",
        body: bytes = b"",
        key: str | None = None,
    ) -> Response: ...


class Refused(Exception):
    """What the API said no with."""

    def __init__(self, status: int, title: str, detail: str, *, in_doubt: bool = False) -> None:
        super().__init__(title)
        self.status = status
        self.title = title
        self.detail = detail
        self.in_doubt = in_doubt
        """Whether what was asked for may have been done all the same."""


class Done(NamedTuple):
    """A change that was made; `again` when it was made by an earlier request with its key."""

    shape: Any
    again: bool


class Page(NamedTuple):
    template: str
    values: Mapping[str, Any]
    status: int = 200


class Went(NamedTuple):
    """Where an action leads to, and what is said there: a word of `SAID` in `wording.py`."""

    location: str
    said: str
    again: bool = False


@dataclass(frozen=True)
class Visit:
    api: Api
    session: Session
    path: Mapping[str, str]
    """What stands in the places of the page's path."""
    query: Mapping[str, str]

    async def get(self, path: str, **query: object) -> Any:
        """What the API shows; `path` without its beginning, as `keys/op_…`. Raises `Refused`."""
        wanted = {name: value for name, value in query.items() if value not in {None, ""}}
        asked = urlencode(wanted).encode()
        response = await self.api.ask(self.session.caller, "GET", _place_of(path), query=asked)
        return _shape_of(response)

    async def find(self, path: str, **query: object) -> Any:
        """As `get`, and None for what is not there."""
        try:
            return await self.get(path, **query)
        except Refused as refused:
            if refused.status == 404:
                return None
            raise

    async def act(
        self, path: str, key: str, body: Mapping[str, Any] | None = None, *, method: str = "POST"
    ) -> Done:
        """Change something, once for its key. Raises `Refused`."""
        content = b"" if body is None else msgspec.json.encode(body)
        response = await self.api.ask(
            self.session.caller, method, _place_of(path), body=content, key=key
        )
        shape = _shape_of(response)
        return Done(shape, (b"idempotent-replayed", b"true") in response.headers)

    def asked(self, *names: str) -> dict[str, str]:
        """Those filters that are set."""
        return {
            name: self.query[name].strip() for name in names if self.query.get(name, "").strip()
        }


Show = Callable[[Visit], Awaitable[Page]]
Form = Mapping[str, str]
Do = Callable[[Visit, Form], Awaitable[Went | Page]]


class Place(NamedTuple):
    """A page: where it is, and how it is made. With `do`, it is a form that does something."""

    path: str
    show: Show
    do: Do | None = None


def part(text: str) -> str:
    """As one part of a path, whatever is in it."""
    return quote(text, safe="")


def _place_of(path: str) -> str:
    return f"/api/admin/{path}"


def _shape_of(response: Response) -> Any:
    shape = exact.read(response.body) if response.body else {}
    status = response.status
    if status < 400:
        return shape
    # A conflict that names an operation is one with an earlier request of the same key.
    in_doubt = status >= 500 or (status == _CONFLICT and "operation_id" in shape)
    raise Refused(status, shape.get("title", ""), shape.get("detail", ""), in_doubt=in_doubt)
