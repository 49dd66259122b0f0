"""What a schedule starts each second."""

from pathlib import Path

from oncekey import App, Context

flows = App()


def note(name: str, tick: str) -> None:
    with Path("ticks.txt").open("a") as ticks:
        print(name, tick, file=ticks)


@flows.workflow
async def beat(ctx: Context, name: str) -> None:
    # A tick has a key, `sched:{schedule}:{milliseconds}`, and starts one workflow.
    await ctx.run("note", note, name, ctx.key)
