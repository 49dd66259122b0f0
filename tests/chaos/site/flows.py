"""The workflows that are served. Each step sees the mark of the one before, and leaves its own."""

from typing import Any

from oncekey import App, Context, Retry
from tests.chaos.site.marks import effect

flows = App(retry=Retry(initial=0.2, factor=1.5, longest=2.0))

Given = dict[str, Any]


async def step(ctx: Context, given: Given, name: str, saw: str) -> str:
    """One step of a workflow, which is done once."""
    told = (given["job"], "step", ctx.tenant, f"{ctx.id}:{name}", "", saw)
    return await ctx.run(name, effect, *told)


@flows.workflow
async def order(ctx: Context, given: Given) -> Given:
    """Charged, paid by whoever resolves the promise first, packed, and sent by a task."""
    charged = await step(ctx, given, "charge", "")
    told = await ctx.promise("paid", key=given["promise"])
    await ctx.sleep(given["rest"])
    packed = await step(ctx, given, "pack", charged)
    sent = await ctx.call(send, given, packed, key=f"send:{given['job']}")
    return {"told": told["value"], "marks": [charged, packed, sent]}


@flows.task
def send(given: Given, packed: str) -> str:
    return effect(given["job"], "task", "", f"send:{given['job']}", saw=packed)


@flows.workflow
async def three(ctx: Context, given: Given) -> Given:
    marks = [""]
    for name in ("one", "two", "three"):
        marks.append(await step(ctx, given, name, marks[-1]))
    return {"marks": marks[1:]}


@flows.workflow
async def hold(ctx: Context, given: Given) -> Given:
    """Waits for what never comes, until it is cancelled."""
    await step(ctx, given, "begin", "")
    return await ctx.promise("never", key=f"never:{given['job']}")
