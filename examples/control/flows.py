"""A workflow that cannot go on until somebody has mended something."""

from datetime import timedelta
from pathlib import Path

from oncekey import App, Context, Retry

flows = App()


def design(text: str) -> str:
    with Path("designs.txt").open("a") as designs:
        print(text, file=designs)
    return text.upper()


def put_on_paper(text: str) -> str:
    if not Path("printer.txt").exists():
        raise RuntimeError("there is no printer")
    return f"printed {text}"


@flows.workflow(retry=Retry(attempts=2, initial=0.1))  # then it is paused
async def poster(ctx: Context, text: str) -> str:
    designed = await ctx.run("design", design, text)
    return await ctx.run("print", put_on_paper, designed)


@flows.workflow
async def patience(ctx: Context) -> None:
    await ctx.sleep(timedelta(days=365))
