"""Orders: one route takes them and starts a workflow, one pays, one looks.

It knows nothing of Restate. What is done to the world is a line in `effects.txt`, with the process
that did it.
"""

import os
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from oncekey import App, Context, NotFound

EFFECTS = Path(__file__).with_name("effects.txt")

flows = App()


@dataclass
class Order:
    id: int
    item: str


def note(effect: str) -> None:
    """One write is one line, also when two processes write at once."""
    with EFFECTS.open("ab", buffering=0) as lines:
        lines.write(f"{effect}, by process {os.getpid()}\n".encode())


@flows.workflow
async def process_order(ctx: Context, order: Order) -> str:
    await ctx.run("charge", note, f"order {order.id}: charged")
    who = await ctx.promise("payment", key=f"payment:{order.id}", timeout=timedelta(hours=1))
    await ctx.run("ship", note, f"order {order.id}: {order.item} shipped")
    return f"{order.item} for {who}"


async def create_order(request: Request) -> JSONResponse:
    order = Order(**await request.json())
    note(f"order {order.id}: taken")
    started = await flows.start(process_order, order, key=f"order:{order.id}")
    return JSONResponse({"order": order.id, "workflow": started.id}, status_code=201)


async def pay(request: Request) -> JSONResponse:
    """Stands for the webhook of a payment provider: it may come early, and twice."""
    number = request.path_params["number"]
    answer = await flows.resolve(
        f"key:payment:{number}", "ann", request_key=f"evt_{number}", park=True
    )
    return JSONResponse({"order": number, "paid before": not answer.key_new})


async def show(request: Request) -> JSONResponse:
    """Waits a little for the end of the order."""
    try:
        handle = await flows.handle(request.path_params["workflow"])
    except NotFound:
        return JSONResponse({"error": "there is no such order"}, status_code=404)
    try:
        return JSONResponse({"status": "done", "result": await handle.result(timeout=10)})
    except TimeoutError:
        return JSONResponse({"status": "waits"})


app = Starlette(
    routes=[
        Route("/orders", create_order, methods=["POST"]),
        Route("/orders/{number:int}/pay", pay, methods=["POST"]),
        Route("/workflows/{workflow}", show, methods=["GET"]),
    ]
)
