"""The third scene: workflows wait for a payment; Stripe tells of one, twice, and somebody lies."""

from __future__ import annotations

import json
import time

import httpx

from oncekey.cli.tour.stage import Stage
from oncekey.webhooks.delivery import Delivery
from oncekey.webhooks.providers.stripe import Stripe

_PAID, _UNPAID = 1004, 1005
_AMOUNT = 1900


def play(stage: Stage) -> None:
    stage.teller.scene(
        3,
        "A webhook comes, comes again, and is forged",
        "Two orders wait for Stripe. No process waits: each is a row in the ledger.",
    )
    paid, unpaid = _start(stage, _PAID), _start(stage, _UNPAID)
    _deliver(stage, paid)
    _forge(stage, unpaid)


def _start(stage: Stage, order: int) -> str:
    teller, client = stage.teller, stage.client
    execution = client.start("await_payment", order, _AMOUNT)
    with teller.waiting("until it comes to its promise"):
        client.await_status(execution, "waiting")
    teller.check(f"order {order} waits", client.status(execution), "waiting")
    return execution


def _deliver(stage: Stage, execution: str) -> None:
    teller = stage.teller
    teller.say(f"Stripe says that order {_PAID} is paid, and signs it:")
    body = _event(_PAID)
    first = _post(stage, body, stage.hook.secret)
    teller.check("taken", first.status_code, 200)
    found = stage.client.await_end(execution)
    teller.check("the workflow went on", found.get("result"), f"order {_PAID}: 19.00 paid")
    teller.say("Stripe is not sure that it arrived, and delivers it again:")
    again = _post(stage, body, stage.hook.secret)
    teller.check("a duplicate is no failure", again.status_code, 200)
    teller.check("and nothing follows it", again.headers.get("Idempotent-Replayed"), "true")


def _forge(stage: Stage, execution: str) -> None:
    teller = stage.teller
    teller.say(f"Somebody else says that order {_UNPAID} is paid, and has to guess the secret:")
    forged = _post(stage, _event(_UNPAID), Stripe().new_secret())
    teller.check("refused", forged.status_code, 401)
    teller.check(f"order {_UNPAID} waits on", stage.client.status(execution), "waiting")


def _post(stage: Stage, body: bytes, secret: str) -> httpx.Response:
    """A delivery as Stripe makes it."""
    signed = Stripe().sign(Delivery("", (), body), secret, time.time())
    return stage.client.post(stage.hook.path, body, signature=signed.header("Stripe-Signature"))


def _event(order: int) -> bytes:
    charge = {"id": f"pi_{order}", "amount": _AMOUNT}
    return json.dumps({"id": f"evt_{order}", "data": {"object": charge}}).encode()
