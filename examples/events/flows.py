"""Whoever is concerned goes on: parcels wait for shipments that fit a condition."""

import json
from datetime import timedelta
from typing import Any

from oncekey import App, Context

flows = App()


@flows.workflow
async def parcel(ctx: Context, order_id: str) -> str:
    shipment: dict[str, Any] = await ctx.event(
        "shipment:created",
        # Text of others is quoted, never pasted.
        where=f"input.order_id == {json.dumps(order_id)} && input.parcels > 0",
        timeout=timedelta(days=3),
        lookback=timedelta(minutes=5),  # also what came shortly before
    )
    return f"{shipment['parcels']} parcels of order {order_id}"
