"""Two workflows that wait for others: for a payment by its key, for a decision by a token."""

from datetime import timedelta
from pathlib import Path

from oncekey import App, Context, PromiseRejected

flows = App()


@flows.workflow
async def order(ctx: Context, number: int) -> str:
    try:
        payment = await ctx.promise("payment", key=f"stripe:ch_{number}", type=dict[str, int])
    except PromiseRejected as error:
        return f"order {number} is not paid: {error}"
    return f"order {number}: {payment['cents']} cents paid"


def mail(token: str) -> None:
    """Stands for a mail with a link to click on."""
    Path("token.txt").write_text(token)


@flows.workflow
async def approval(ctx: Context, what: str) -> str:
    token = await ctx.token("decision", timeout=timedelta(days=7))
    await ctx.run("mail", mail, token)
    approved = await ctx.promise("decision", type=bool)
    return f"{what} is {'approved' if approved else 'turned down'}"
