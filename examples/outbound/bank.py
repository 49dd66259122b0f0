"""A bank that takes keys: `uvicorn bank:app`. GET /payments lists what was paid."""

from fastapi import FastAPI

import oncekey
from oncekey.asgi import IdempotencyMiddleware

app = FastAPI()
app.add_middleware(IdempotencyMiddleware, ledger=oncekey.open("sqlite:///bank.db"), required=True)
payments: list[dict[str, int]] = []


@app.post("/payments", status_code=201)
def pay(payment: dict[str, int]) -> dict[str, int]:
    payments.append(payment)
    return {"payment": len(payments)}


@app.get("/payments")
def list_payments() -> list[dict[str, int]]:
    return payments
