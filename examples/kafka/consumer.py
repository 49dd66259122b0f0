"""A consumer of Kafka that handles each message once: `python consumer.py BROKER TOPIC`."""

import asyncio
import json
import sys
from pathlib import Path
from typing import TypeAlias

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import CommitFailedError, IllegalStateError

import oncekey

Message: TypeAlias = ConsumerRecord[bytes, bytes]
ledger = oncekey.open("sqlite:///oncekey.db")


def key_of(message: Message) -> str:
    """The id that its producer gave to what has happened; else its place in the log.

    The place knows what the broker delivers again. The id also knows what the producer sent twice.
    """
    headers = dict(message.headers)
    if "event-id" in headers:
        return headers["event-id"].decode()
    return f"{message.topic}:{message.partition}:{message.offset}"


# After a rebalance the one who had the partition may still be at it: its result is waited for.
@oncekey.once(key=key_of, ledger=ledger, endpoint="orders", retention="webhook", wait=60)
async def handle(message: Message) -> str:
    order = json.loads(message.value or b"{}")
    if "item" not in order:
        raise oncekey.TerminalError("an order without an item")
    await asyncio.to_thread(write, "orders.txt", order["item"])
    return f"{order['item']} is ordered"


async def consume(consumer: AIOKafkaConsumer) -> None:
    async for message in consumer:
        try:
            await handle(message)
        except oncekey.TerminalError as error:
            # It will never be handled: put it aside, and go on with what comes behind it.
            await asyncio.to_thread(write, "letters.txt", f"{key_of(message)}: {error}")
        # Handled first, committed then: what is lost between the two is delivered again.
        place = TopicPartition(message.topic, message.partition)
        try:
            await consumer.commit({place: message.offset + 1})
        except (CommitFailedError, IllegalStateError):
            continue  # the partition is somebody else's now, who gets the result from the ledger


def write(name: str, line: str) -> None:
    with Path(name).open("a") as file:
        print(line, file=file)


async def main(broker: str, topic: str) -> None:
    async with AIOKafkaConsumer(
        topic,
        bootstrap_servers=broker,
        group_id="orders",
        enable_auto_commit=False,  # or messages would be committed that nobody has handled
        auto_offset_reset="earliest",
    ) as consumer:
        await consume(consumer)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
