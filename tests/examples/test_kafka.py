"""The example of Kafka. There is no broker here: these consumers deliver as one does, and again."""

import asyncio
import os
import runpy
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import ConsumerRecord
from aiokafka.errors import CommitFailedError

from tests.fixtures.followed import EXAMPLES, Follow

Message = ConsumerRecord[bytes, bytes]


def test_kafka(example: Follow) -> None:
    _, first, again, written, keys = example("kafka").follow()

    assert first.output.split()[1::2] == ["1", "1", "2", "3", "3", "4", "5"]
    assert again == first
    aside = "evt-2: an order without an item"
    assert written.output.splitlines() == ["tea", "cake", "jam", aside, aside]
    assert {"evt-1", "evt-2", "evt-3", "orders:0:2"} <= set(keys.output.split())


def message(offset: int, item: str) -> Message:
    value = f'{{"item": "{item}"}}'.encode()
    return Message("orders", 0, offset, 0, 0, None, value, None, -1, len(value), [])


class Partition:
    """One partition and its group: from where it is read, and who has it."""

    def __init__(self, *items: str) -> None:
        self.messages = [message(offset, item) for offset, item in enumerate(items)]
        self.committed = 0
        self.member: Member | None = None


class Member:
    """A consumer that has the partition until another one is given it."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self.given = asyncio.Event()
        partition.member = self

    async def __aiter__(self) -> AsyncIterator[Message]:
        for each in self._partition.messages[self._partition.committed :]:
            if self._partition.member is not self:
                return
            self.given.set()
            yield each

    async def commit(self, offsets: dict[Any, int]) -> None:
        if self._partition.member is not self:
            raise CommitFailedError
        (self._partition.committed,) = offsets.values()


def test_a_partition_that_is_given_away_while_a_message_is_handled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    consume = runpy.run_path(str(EXAMPLES / "kafka" / "consumer.py"))["consume"]
    partition = Partition("tea", "cake")
    # Whoever writes to it waits until somebody reads.
    os.mkfifo("orders.txt")

    async def both() -> bytes:
        first = Member(partition)
        at_it = asyncio.create_task(consume(first))
        await first.given.wait()
        second = Member(partition)
        waiting = asyncio.create_task(consume(second))
        await second.given.wait()
        reader = os.open("orders.txt", os.O_RDWR)
        await asyncio.gather(at_it, waiting)
        try:
            return os.read(reader, 1000)
        finally:
            os.close(reader)

    assert asyncio.run(both()) == b"tea\ncake\n"
    assert partition.committed == 2


def test_a_consumer_that_is_killed_in_the_middle(example: Follow) -> None:
    followed = example("kafka")
    into, rehearse, again, shown, _ = followed.lines
    # It waits for somebody who reads, and is killed there.
    until_it_waits = "until oncekey keys list --state in-progress | grep evt-1; do :; done"
    followed.type(into, f"mkfifo orders.txt; {rehearse} &", until_it_waits)
    *_, done, written = followed.type("kill -9 $!; rm orders.txt", again, shown)

    assert done.output.startswith("committed 1\n")
    assert written.output.split()[:3] == ["tea", "cake", "jam"]
