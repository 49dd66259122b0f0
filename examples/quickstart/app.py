"""A small orders API that knows nothing of keys: `oncekey serve` makes it safe to retry."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from json import JSONDecodeError

import payments
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

orders: list[dict[str, object]] = []
numbers = itertools.count(1)


async def create_order(request: Request) -> JSONResponse:
    try:
        wanted = await request.json()
    except JSONDecodeError:
        wanted = None
    if not isinstance(wanted, dict) or "item" not in wanted:
        return JSONResponse({"error": "send JSON with an item"}, status_code=400)
    order = {"id": next(numbers), **wanted}
    orders.append(order)
    return JSONResponse(order, status_code=201)


async def create_order_slowly(request: Request) -> JSONResponse:
    """Slow enough to send the same request again while it runs."""
    await asyncio.sleep(1)
    return await create_order(request)


async def list_orders(_: Request) -> JSONResponse:
    return JSONResponse(orders)


@asynccontextmanager
async def life(_: Starlette) -> AsyncIterator[None]:
    with payments.running():
        yield


app = Starlette(
    lifespan=life,
    routes=[
        Route("/orders", create_order, methods=["POST"]),
        Route("/orders", list_orders, methods=["GET"]),
        Route("/orders/slow", create_order_slowly, methods=["POST"]),
    ],
)
