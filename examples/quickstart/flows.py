"""A sample order workflow: charge, wait for the payment's webhook, rest, send the receipt."""

from dataclasses import dataclass
from datetime import timedelta

from oncekey import App, Context

flows = App()


@dataclass
class Order:
    id: int
    item: str
    cents: int


@dataclass
class Charge:
    id: str
    amount: int


@dataclass
class Payment:
    """What Stripe's webhook tells, as far as it matters here."""

    data: dict[str, Charge]


@dataclass
class Receipt:
    order: int
    text: str


async def create_charge(order: Order) -> str:
    """Stands for a call to the payment provider, which answers the id of the charge."""
    return f"ch_{order.id}"


@flows.task
async def send_receipt(order: Order, payment: Payment) -> Receipt:
    """Stands for a mail. It is tried again until it is sent."""
    return Receipt(order.id, f"{order.item}: {payment.data['object'].amount / 100:.2f} paid")


@flows.workflow
async def process_order(ctx: Context, order: Order) -> Receipt:
    charge = await ctx.run("create-charge", create_charge, order)
    # Stripe's webhook resolves it by this key, also when it comes before this line is run.
    payment = await ctx.promise(
        "payment", key=f"stripe:{charge}", timeout=timedelta(hours=1), type=Payment
    )
    await ctx.sleep(timedelta(seconds=2))
    return await ctx.call(send_receipt, order, payment, key=f"receipt:{order.id}")
