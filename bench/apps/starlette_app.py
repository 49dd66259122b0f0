"""Starlette: the framework the peers are compared on, because every ASGI guard fits it."""

import asyncio

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bench.apps.guards import guarded
from bench.apps.handler import SLOW_SECONDS, create_order, runs


async def orders(request: Request) -> Response:
    return Response(create_order(await request.body()), 201, media_type="application/json")


async def slow(request: Request) -> Response:
    body = await request.body()
    await asyncio.sleep(SLOW_SECONDS)
    return Response(create_order(body), 201, media_type="application/json")


async def count(_: Request) -> Response:
    return Response(runs(), media_type="application/json")


app = guarded(
    Starlette(
        routes=[
            Route("/orders", orders, methods=["POST"]),
            Route("/slow", slow, methods=["POST"]),
            Route("/runs", count),
        ]
    )
)
