"""An order that is paid by card: Stripe tells by its webhook how that went."""

from datetime import timedelta
from typing import Any

from oncekey import App, Context

flows = App()


async def create_payment(number: int) -> str:
    """Stands for a call to Stripe, which answers the id of the payment."""
    return f"pi_{number}"


@flows.workflow
async def order(ctx: Context, number: int) -> str:
    payment = await ctx.run("create-payment", create_payment, number)
    # The webhook resolves this key with Stripe's event, also when it is faster than we are.
    event: dict[str, Any] = await ctx.promise(
        "payment", key=f"stripe:{payment}", timeout=timedelta(hours=1)
    )
    if event["type"] != "payment_intent.succeeded":
        return f"order {number} is not paid"
    return f"order {number}: {event['data']['object']['amount'] / 100:.2f} paid"
