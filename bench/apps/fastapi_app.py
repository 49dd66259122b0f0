"""FastAPI with the least it allows: a typed body in, a dict out, no response model."""

import asyncio

from fastapi import FastAPI
from pydantic import BaseModel

from bench.apps.guards import guarded
from bench.apps.handler import SLOW_SECONDS, Runs


class Order(BaseModel):
    item: str
    qty: int


_api = FastAPI()


@_api.post("/orders", status_code=201, response_model=None)
async def orders(order: Order) -> dict[str, object]:
    Runs.total += 1
    return {"id": "ord_1", "ok": order.qty > 0}


@_api.post("/slow", status_code=201, response_model=None)
async def slow(order: Order) -> dict[str, object]:
    await asyncio.sleep(SLOW_SECONDS)
    return await orders(order)


@_api.get("/runs", response_model=None)
async def count() -> int:
    return Runs.total


app = guarded(_api)
