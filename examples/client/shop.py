"""A shop whose API takes keys. Every third answer gets lost on its way."""

from itertools import count

from fastapi import FastAPI, Response

import oncekey
from oncekey.asgi import IdempotencyMiddleware

api = FastAPI()
orders: list[str] = []


@api.post("/orders", status_code=201)
def create_order(order: dict[str, str]) -> dict[str, int]:
    orders.append(order["item"])
    return {"order": len(orders)}


@api.get("/orders")
def list_orders() -> list[str]:
    return orders


app = FastAPI()
answers = count(1)


@app.middleware("http")
async def lose_some(request, call_next):  # type: ignore[no-untyped-def]
    answer = await call_next(request)
    lost = request.method == "POST" and next(answers) % 3 == 1
    return Response(status_code=504) if lost else answer


app.mount("/", IdempotencyMiddleware(api, ledger=oncekey.open("sqlite:///shop.db")))
