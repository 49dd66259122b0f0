"""A worker of Temporal whose activity is completed when its promise is resolved."""

import asyncio

from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker
from workflows import Order

from oncekey import App
from oncekey.temporal import Activities


async def connect() -> Client:
    return await Client.connect("127.0.0.1:7233")


app = App()
activities = Activities(app, connect)


@activity.defn
async def payment_of(charge: str) -> None:
    # Whatever has to be done first is done here. What it returns is what the promise brings.
    await activities.wait_for(f"stripe:{charge}")


async def main() -> None:
    client = await connect()
    worker = Worker(client, task_queue="orders", workflows=[Order], activities=[payment_of])
    async with app.open("sqlite:///oncekey.db"), activities.looking_after():
        print("the worker is ready")
        await worker.run()


if __name__ == "__main__":
    asyncio.run(main())
