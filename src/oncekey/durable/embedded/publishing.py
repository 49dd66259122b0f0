"""Publishing an event: checked, kept under its key, matched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from oncekey.core.answers import Existing
from oncekey.core.errors import InvalidInput, KeyReused, PayloadTooLarge
from oncekey.core.ports import Gone
from oncekey.core.work import Events, Matched, Publish, event_id_of
from oncekey.durable.embedded.asking import EVENTS
from oncekey.durable.embedded.events import EventMatching, event_of
from oncekey.durable.engine import MAX_EVENT, PublishAnswer
from oncekey.durable.nesting import check_depth
from oncekey.durable.values import canonical, fingerprint_of

if TYPE_CHECKING:
    from oncekey.durable.embedded.asking import Asking

_KEY_KEPT = 7 * 24 * 3600 * 1000
_MAX_NAME = 200


class Publishing:
    def __init__(self, asking: Asking, events: EventMatching) -> None:
        self._asking = asking
        self._events = events

    async def publish(
        self,
        tenant: str,
        key: str,
        data: bytes,
        headers: Mapping[str, str],
        idempotency_key: str | None,
    ) -> PublishAnswer:
        packed = _checked(key, data, headers)
        fingerprint = fingerprint_of(key, canonical(data))
        used = idempotency_key is not None
        while True:
            number, now = self._asking.draw(), self._asking.clock.now()
            insert = None
            if idempotency_key is not None:
                insert = self._asking.insert(
                    tenant, EVENTS, idempotency_key, number, fingerprint=fingerprint, keep=_KEY_KEPT
                )
            event = event_of(number, tenant, key, data, packed, now)
            answer: Any = await self._events.publish(Publish(event, insert))
            if isinstance(answer, Gone):
                continue
            if not isinstance(answer, Existing):
                return PublishAnswer(event_id_of(number), answer, used, used)
            if answer.record.fingerprint != fingerprint:
                raise KeyReused(f"the key {idempotency_key!r} was first used for another event")
            matched = await self._matched(tenant, key, answer.record.id)
            return PublishAnswer(event_id_of(answer.record.id), matched, used, False)

    async def _matched(self, tenant: str, key: str, number: int) -> int:
        """How many waits an earlier event settled. Whoever kept it may have died before it matched
        it: then that is done now."""
        found = await self._asking.ask(Events(tenant, key, 0, after=number - 1, limit=1))
        if found and found[0].id == number and not found[0].matched:
            return await self._events.match(found[0])
        return int(await self._asking.ask(Matched(number)))


def _checked(key: str, data: bytes, headers: Mapping[str, str]) -> bytes:
    if not key or len(key) > _MAX_NAME or not key.isprintable():
        raise InvalidInput(f"the key of an event is 1 to {_MAX_NAME} printable characters")
    packed = msgspec.json.encode(dict(headers))
    if len(data) + len(packed) > MAX_EVENT:
        raise PayloadTooLarge(f"the event has {len(data)} bytes; {MAX_EVENT} are allowed")
    check_depth(data, "the data of an event")
    try:
        msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise InvalidInput(f"the data of an event is not JSON: {error}") from None
    return packed
