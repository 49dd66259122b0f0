"""What the rooms of the store have in common: calls to objects of one space, and SQL over them."""

from __future__ import annotations

import re
from typing import Any

from oncekey.stores.restate.admin import Admin
from oncekey.stores.restate.ingress import Ingress, new_nonce
from oncekey.stores.restate.values import pack, unpack

_WORD = re.compile(r"[A-Za-z0-9_.:~-]*")


class Link:
    """`owner` is the number of this process; 0 before it has one."""

    def __init__(self, ingress: Ingress, admin: Admin, space: str, patience: float) -> None:
        self.ingress = ingress
        self.admin = admin
        self.space = space
        self.patience = patience
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
        )
        return unpack(told)

    async def states(
        self, service: str, state: str, *, where: str = "", order: str = "", limit: int = 1000
    ) -> list[tuple[str, str, bytes]]:
        """Id, name and value of the states whose names are LIKE `state`, of all objects of a
        service in this space. `where` and `order` are SQL over `key`, `value_utf8`."""
        sql = (
            "SELECT service_key, key, value_utf8 FROM state WHERE service_name = "  # noqa: S608
            f"{text(service)} AND service_key LIKE {text(self.space + '.%')} "
            f"AND key LIKE {text(state)}"
        )
        sql += f" AND {where}" if where else ""
        sql += f" ORDER BY {order}" if order else ""
        rows = await self.admin.query(f"{sql} LIMIT {int(limit)}")
        start = len(self.space) + 1
        return [
            (row["service_key"][start:], row["key"], row["value_utf8"].encode()) for row in rows
        ]


def text(value: str) -> str:
    """A literal of SQL. Restate's query API takes no parameters, so nothing else is let in than
    what can neither end a literal nor mean anything in one."""
    if not _WORD.fullmatch(value.replace("%", "")):
        raise ValueError("a literal of SQL may hold letters, digits and _.:~- only")
    return f"'{value}'"
