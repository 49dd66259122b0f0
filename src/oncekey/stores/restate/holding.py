"""Who has a key just now, as Restate knows it: what is forwarded writes nothing before its end."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from oncekey.core.model import Record
from oncekey.stores.restate.admin import Admin
from oncekey.stores.restate.envelope import HANDLER, Mark, mark_in
from oncekey.stores.restate.ingress import Ingress
from oncekey.stores.restate.link import text
from oncekey.stores.restate.record import RECORD, unwritten
from oncekey.stores.restate.request import SERVICE

_OK = 200
# The lines of a call stand before its body, and are few.
_HEAD = 8192
_SEEN = (
    f"SELECT s.invocation_id AS id, substr(j.entry_json, 1, {_HEAD}) AS head "  # noqa: S608
    "FROM sys_keyed_service_status s JOIN sys_journal j ON j.id = s.invocation_id "
    f"WHERE s.service_name = {text(SERVICE)} AND j.index = 0"
)
# Without a word about scopes, which OnceKey does not use, Restate would look for it everywhere.
_KEPT = (
    f"SELECT value_utf8 FROM state WHERE service_name = {text(SERVICE)} "  # noqa: S608
    f"AND key = {text(RECORD)} AND scope IS NULL"
)


class Holder(NamedTuple):
    """A call that is under way: its invocation, and whose call it is."""

    id: str
    mark: Mark


class Holding:
    def __init__(self, ingress: Ingress, admin: Admin, space: str) -> None:
        self._ingress = ingress
        self._admin = admin
        self._space = space

    async def of(self, digest: bytes, *, patience: float = 10.0) -> Holder | None:
        """The forwarded request that has the key."""
        name = text(f"{self._space}.{digest.hex()}")
        return await self._seen(f"s.service_key = {name}", patience)

    async def numbered(self, number: int) -> Holder | None:
        """The forwarded request of that operation."""
        mine = text(f"{self._space}.%")
        told = text(f"%{number:016x}.%")
        return await self._seen(f"s.service_key LIKE {mine} AND j.entry_json LIKE {told}", 10.0)

    async def record_of(self, digest: bytes, now: int, *, patience: float) -> Record | None:
        """The record of a key, if its time is not over, told also while nobody can be called to
        tell it; without its body, if that is large."""
        rows = await self._admin.query(
            f"{_KEPT} AND service_key = {text(f'{self._space}.{digest.hex()}')}",
            patience=patience,
        )
        record = unwritten(rows[0]["value_utf8"].encode()) if rows else None
        return None if record is None or record.expires_at <= now else record

    async def id_of(self, digest: bytes, shared: str, *, patience: float = 10.0) -> str:
        """Of the invocation that a call under this key of Restate's makes, or has made."""
        wanted = {
            "target": "idempotentInvocation",
            "service": SERVICE,
            "key": f"{self._space}.{digest.hex()}",
            "handler": HANDLER,
            "idempotencyKey": shared,
        }
        body = msgspec.json.encode(wanted)
        told = msgspec.json.decode(
            await self._ingress.post("/restate/lookup", body, patience=patience)
        )
        return str(told["invocationId"])

    async def is_under_way(self, id_: str, *, patience: float) -> bool:
        """Whether an invocation has not ended. Tables are read as they are: those of a node that is
        just back may tell of what is over, until it has read its log. After this it has."""
        return await self._ingress.is_under_way(id_, patience=patience)

    async def withdraw(self, digest: bytes, shared: str, *, patience: float) -> bool:
        """Take a call back that waits behind another one. False when it has begun, or is over."""
        id_ = await self.id_of(digest, shared, patience=patience)
        reply = await self._admin.ask("PATCH", f"/invocations/{id_}/cancel", patience=patience)
        return reply.status == _OK

    async def forget(self, digest: bytes, shared: str) -> None:
        """Restate's own memory of an answer: the next call with that key is a new one."""
        id_ = await self.id_of(digest, shared)
        await self._admin.ask("PATCH", f"/invocations/{id_}/purge")

    async def _seen(self, where: str, patience: float) -> Holder | None:
        rows = await self._admin.query(f"{_SEEN} AND {where} LIMIT 1", patience=patience)
        mark = mark_in(rows[0]["head"]) if rows else None
        return None if mark is None else Holder(rows[0]["id"], mark)
