"""Orders by FastAPI; one line makes the route safe to retry."""

from fastapi import FastAPI
from pydantic import BaseModel

import oncekey
from oncekey.fastapi import idempotent

app = FastAPI()
ledger = oncekey.open("sqlite:///oncekey.db")
orders: list[str] = []


class Order(BaseModel):
    item: str


@app.post("/orders", status_code=201)
@idempotent(ledger=ledger, required=True)
async def create_order(order: Order) -> dict[str, int | str]:
    orders.append(order.item)
    return {"order": len(orders), "item": order.item}


@app.get("/orders")
async def list_orders() -> list[str]:
    return orders
