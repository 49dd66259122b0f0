"""Orders by Starlette; the middleware makes every unsafe request with a key safe to retry."""

import asyncio

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

import oncekey
from oncekey import route
from oncekey.asgi import IdempotencyMiddleware

orders: list[str] = []


async def create_order(request: Request) -> JSONResponse:
    orders.append((await request.json())["item"])
    number = len(orders)
    await asyncio.sleep(1)  # long enough for a second request to come meanwhile
    return JSONResponse({"order": number}, status_code=201)


async def list_orders(_: Request) -> JSONResponse:
    return JSONResponse(orders)


ledger = oncekey.open("sqlite:///oncekey.db")
app = Starlette(
    routes=[
        Route("/orders", create_order, methods=["POST"]),
        Route("/orders", list_orders, methods=["GET"]),
    ],
    middleware=[
        Middleware(
            IdempotencyMiddleware,
            ledger=ledger,
            # A request that comes while the first one runs waits for its answer.
            routes=[route("/orders", required=True, in_flight="attach")],
        )
    ],
)
