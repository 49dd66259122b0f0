"""Orders by Flask; the extension makes every unsafe request with a key safe to retry."""

from flask import Flask, request
from flask.typing import ResponseReturnValue

import oncekey
from oncekey.flask import Idempotency, idempotent

app = Flask(__name__)
Idempotency(app, ledger=oncekey.open("sqlite:///oncekey.db"))
orders: list[str] = []


@app.post("/orders")
def create_order() -> ResponseReturnValue:
    orders.append(request.json["item"])
    return {"order": len(orders)}, 201


@app.post("/orders/<int:number>/pay")
@idempotent(required=True, retention="financial")
def pay(number: int) -> ResponseReturnValue:
    return {"paid": number, "item": orders[number - 1]}


@app.get("/orders")
def list_orders() -> ResponseReturnValue:
    return orders
