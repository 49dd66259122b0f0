"""An order that is paid by somebody who calls over gRPC."""

from oncekey import App, Context

flows = App()


@flows.workflow
async def order(ctx: Context, number: int) -> str:
    cents = await ctx.promise("payment", key=f"payment:{number}", type=int)
    return f"order {number}: {cents} cents paid"
