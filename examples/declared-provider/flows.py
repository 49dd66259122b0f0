"""What follows a delivery."""

from pathlib import Path

from oncekey import App, Context

flows = App()


def store(number: int) -> None:
    with Path("parcels.txt").open("a") as parcels:
        print(f"parcel {number}", file=parcels)


@flows.workflow
async def parcel(ctx: Context, body: dict[str, int]) -> None:
    await ctx.run("store", store, body["parcel"])
