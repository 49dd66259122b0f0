"""Orders, served by several processes."""

import os
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route


def save(item: str) -> None:
    with Path("orders.txt").open("a") as orders:
        print(item, file=orders)


async def create_order(request: Request) -> PlainTextResponse:
    item = (await request.body()).decode()
    save(item)
    return PlainTextResponse(f"{item} is ordered, by process {os.getpid()}\n", status_code=201)


app = Starlette(routes=[Route("/orders", create_order, methods=["POST"])])
