"""The workflows of the shop: an order that is charged and sent, and one that waits to be paid."""

import tomllib
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx

from oncekey import App, Context

flows = App()


@dataclass
class Order:
    order: int
    amount: int


async def charge_card(order: Order) -> str:
    return await _asked_of_bank("/charges", order)


async def send_parcel(order: Order) -> str:
    return await _asked_of_bank("/parcels", order)


@flows.workflow
async def sell(ctx: Context, order: Order) -> dict[str, str]:
    # Each step is in the journal before the next one begins.
    charge = await ctx.run("charge-card", charge_card, order)
    parcel = await ctx.run("send-parcel", send_parcel, order)
    return {"charge": charge, "parcel": parcel}


@flows.workflow
async def await_payment(ctx: Context, order: Order) -> str:
    # No process waits: this is a row, until the webhook resolves the key.
    event: dict[str, Any] = await ctx.promise(
        "payment", key=f"stripe:pi_{order.order}", timeout=timedelta(hours=1)
    )
    return f"order {order.order}: {event['data']['object']['amount'] / 100:.2f} paid"


async def _asked_of_bank(path: str, order: Order) -> str:
    config = tomllib.loads(Path(__file__).with_name("oncekey.toml").read_text())
    async with httpx.AsyncClient(base_url=config["upstreams"]["bank"]["url"]) as bank:
        body = {"order": order.order, "amount": order.amount}
        answer = await bank.post(path, json=body, timeout=None)
    made: str = answer.raise_for_status().json()["id"]
    return made
