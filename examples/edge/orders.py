"""Orders behind the edge, which know nothing of keys: `uvicorn orders:app --port 9000`."""

import asyncio

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

orders: list[dict[str, object]] = []


async def create(request: Request) -> JSONResponse:
    wanted = await request.json()
    order = {
        "id": len(orders) + 1,
        "item": wanted["item"],
        # Told by the edge, whatever the client sent.
        "for": request.headers["x-subject"],
        "key": request.headers.get("idempotency-key"),
    }
    orders.append(order)
    if wanted["item"] == "cake":
        # Longer than the edge waits: it cannot know that the order was made.
        await asyncio.sleep(5)
    return JSONResponse(order, status_code=201)


async def show(_: Request) -> JSONResponse:
    return JSONResponse(orders)


app = Starlette(
    routes=[
        Route("/api/v1/orders", create, methods=["POST"]),
        Route("/api/v1/orders", show, methods=["GET"]),
    ]
)
