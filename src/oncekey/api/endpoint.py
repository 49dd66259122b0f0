"""What the API is made of: endpoints in one table, which the router and OpenAPI both read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from msgspec import Struct

from oncekey.api.admin.means import Means
from oncekey.api.patience import Patience
from oncekey.core.callers import Caller
from oncekey.core.claim import Claim
from oncekey.core.ledger import Ledger
from oncekey.durable.engine import Engine
from oncekey.wire.problem import Response
from oncekey.wire.rule import Rule

Policy = Literal["REQUIRED_A", "ACCEPTED", "PROHIBITED"]
Access = Literal["open", "caller", "admin"]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class Parameter(NamedTuple):
    """Something that may stand in the query of a path."""

    name: str
    description: str
    schema: Mapping[str, Any]


class Reply(NamedTuple):
    """An answer that is no problem: what it means, and the name of its schema."""

    description: str
    schema: str


@dataclass(frozen=True)
class Endpoint:
    """One method of one path. `{name}` stands for one segment, `{name:path}` for any number."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    handle: Callable[..., Awaitable[Response]]
    """Given the call, and the body when there is one."""
    summary: str
    replies: Mapping[int, Reply]
    policy: Policy = "PROHIBITED"
    """What an Idempotency-Key is here."""
    body: type[Struct] | None = None
    query: tuple[Parameter, ...] = ()
    problems: tuple[str, ...] = ()
    """Codes, beside those that every endpoint may answer with."""
    access: Access = "caller"
    """Whose API key it takes. Neither a caller's nor an admin's is good for the other's."""
    rule: Rule | None = None
    """Under which its whole answer is kept by the ledger, for a request with a key."""

    @property
    def is_open(self) -> bool:
        """Whether everybody may call it."""
        return self.access == "open"


@dataclass(frozen=True)
class Call:
    """A request that was let in."""

    engine: Engine
    ledger: Ledger
    patience: Patience
    caller: Caller | None
    path: Mapping[str, str]
    query: Mapping[str, str]
    key: str | None
    """Of the header Idempotency-Key."""
    receive: Receive
    root: str = ""
    """Where the API is mounted."""
    means: Means | None = None
    """What admins work with."""
    claim: Claim | None = None
    """Under which it is run, when its whole answer is kept."""

    @property
    def tenant(self) -> str:
        """Always the caller's own: another's is refused before a call is made."""
        assert self.caller is not None
        return self.caller.tenant

    def location(self, kind: str, name: str) -> str:
        """The path of something of the caller's."""
        return f"{quote(self.root)}/api/tenants/{self.tenant}/{kind}/{quote(name, safe=':')}"
