"""An order that outlives its process: charge, wait for the payment, send the receipt."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from oncekey import App, Context

flows = App()


def create_charge(number: int) -> str:
    """Stands for a call to a payment provider; it writes down how often it was called."""
    with Path("charges.txt").open("a") as charges:
        print(f"ch_{number}", file=charges)
    return f"ch_{number}"


@flows.task
async def send_receipt(number: int, cents: int) -> str:
    return f"order {number}: {cents / 100:.2f} paid"


@flows.workflow
async def order(ctx: Context, number: int) -> str:
    charge = await ctx.run("create-charge", create_charge, number)
    payment: dict[str, Any] = await ctx.promise(
        "payment", key=f"payment:{charge}", timeout=timedelta(days=1)
    )
    receipt: str = await ctx.call(send_receipt, number, payment["cents"], key=f"receipt:{number}")
    return receipt
