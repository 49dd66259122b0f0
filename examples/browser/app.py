"""A shop with one page and one button. It knows nothing of keys: `oncekey serve` does."""

import asyncio
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

HERE = Path(__file__).parent
CLIENT = HERE.parents[1] / "clients" / "js"

orders: list[dict[str, object]] = []


async def page(_: Request) -> FileResponse:
    return FileResponse(HERE / "index.html")


async def create_order(request: Request) -> JSONResponse:
    order = {"id": len(orders) + 1, **await request.json()}
    orders.append(order)
    # Long enough to click twice, to reload the page, or to close it.
    await asyncio.sleep(2)
    return JSONResponse(order, status_code=201)


async def list_orders(_: Request) -> JSONResponse:
    return JSONResponse(orders)


app = Starlette(
    routes=[
        Route("/", page),
        Route("/orders", create_order, methods=["POST"]),
        Route("/orders", list_orders, methods=["GET"]),
        Mount("/client", StaticFiles(directory=CLIENT)),
    ]
)
