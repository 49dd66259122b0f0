"""What waits for the deliveries of the walk of a webhook."""

import asyncio

from oncekey import App, Context

app = App()
_ENDED: dict[str, asyncio.Future[None]] = {}


def ended(key: str) -> asyncio.Future[None]:
    """Done when the workflow that waits for `key` has gone on."""
    return _ENDED.setdefault(key, asyncio.get_running_loop().create_future())


@app.workflow
async def wait(ctx: Context, key: str) -> int:
    paid = await ctx.promise("paid", key=key, type=dict)
    ended(key).set_result(None)
    return len(paid)
