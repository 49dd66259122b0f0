"""What the rooms of the store have in common: calls to objects of one space, and SQL over them."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from typing import Any

from oncekey.stores.restate.admin import Admin
from oncekey.stores.restate.ingress import ATTEMPT, Ingress, new_nonce
from oncekey.stores.restate.values import pack, unpack

_WORD = re.compile(r"[A-Za-z0-9_.:~%-]*")


class Link:
    """`owner` is the number of this process; 0 before it has one."""

    def __init__(
        self,
        ingress: Ingress,
        admin: Admin,
        space: str,
        patience: float,
        begin: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self.ingress = ingress
        self.admin = admin
        self.space = space
        self.patience = patience
        self.begin = begin
        """Do something beside everything else, until the store is closed."""
        self.owner = 0

    def key(self, id: str) -> str:  # noqa: A002 - the id of an object within the space
        return f"{self.space}.{id}"

    async def call(
        self,
        service: str,
        id: str | None,  # noqa: A002
        handler: str,
        value: Any,
        *,
        nonce: str | None = None,
        patience: float | None = None,
        attempt: float = ATTEMPT,
    ) -> Any:
        """Ask the object of that id (or a service without one), once: values go and come."""
        key = None if id is None else self.key(id)
        told = await self.ingress.call(
            service,
            key,
            handler,
            pack(value),
            nonce=nonce or new_nonce(),
            patience=patience or self.patience,
            attempt=attempt,
        )
        return unpack(told)

    async def states(
        self, service: str, state: str, *, where: str = "", order: str = "", limit: int = 1000
    ) -> list[tuple[str, str, bytes]]:
        """Id, name and value of the states whose names are LIKE `state`, of all objects of a
        service in this space. `where` and `order` are SQL over `key`, `value_utf8`."""
        sql = f"SELECT service_key, key, value_utf8 {self._states(service, state, where)}"
        sql += f" ORDER BY {order}" if order else ""
        rows = await self.admin.query(f"{sql} LIMIT {int(limit)}")
        start = len(self.space) + 1
        return [
            (row["service_key"][start:], row["key"], row["value_utf8"].encode()) for row in rows
        ]

    async def count(self, service: str, state: str, *, where: str = "") -> int:
        """How many states there are of which `states` would tell."""
        sql = f"SELECT count(*) AS found {self._states(service, state, where)}"
        return int((await self.admin.query(sql))[0]["found"])

    def _states(self, service: str, state: str, where: str) -> str:
        mine = f"service_key LIKE {text(self.space + '.%')}"
        named = f"service_name = {text(service)} AND key LIKE {text(state)}"
        return f"FROM state WHERE {mine} AND {named}" + (f" AND {where}" if where else "")


def text(value: str) -> str:
    """A literal of SQL. Restate's query API takes no parameters, so that nothing that could end a
    literal, or mean anything in one, is ever written as it is."""
    if _WORD.fullmatch(value):
        return f"'{value}'"
    return f"CAST(decode('{value.encode('utf-8', 'replace').hex()}', 'hex') AS VARCHAR)"
