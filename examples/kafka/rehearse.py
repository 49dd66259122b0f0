"""Runs the consumer without a broker: what it is given is made up here, some of it twice."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from consumer import Message, consume

SENT = [
    (0, "evt-1", b'{"item": "tea"}'),
    (0, "evt-1", b'{"item": "tea"}'),  # delivered again, after a rebalance
    (1, "evt-1", b'{"item": "tea"}'),  # sent again by its producer: another place, the same event
    (2, None, b'{"item": "cake"}'),  # without an id: its place is its key
    (2, None, b'{"item": "cake"}'),
    (3, "evt-2", b'{"no item": true}'),
    (4, "evt-3", b'{"item": "jam"}'),
]


class Rehearsal:
    """What `consume` asks of a consumer of aiokafka, and nothing else."""

    async def __aiter__(self) -> AsyncIterator[Message]:
        for offset, event, value in SENT:
            headers = [("event-id", event.encode())] if event else []
            yield Message("orders", 0, offset, 0, 0, None, value, None, -1, len(value), headers)

    async def commit(self, offsets: dict[Any, int]) -> None:
        print("committed", *offsets.values())


asyncio.run(consume(Rehearsal()))
