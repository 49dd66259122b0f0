"""Pays an order at the bank, and dies right after it when told: python order.py NUMBER [--die]"""

import os
import signal
import sys

import httpx

import oncekey
from oncekey.outbound import IdempotentTransport

bank = httpx.Client(base_url="http://127.0.0.1:8000", transport=IdempotentTransport())


def pay(number: int) -> dict[str, int]:
    paid = bank.post("/payments", json={"order": number}).json()
    shipped = bank.post("/payments", json={"shipping": number}).json()
    if "--die" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"order": paid["payment"], "shipping": shipped["payment"]}


number = int(sys.argv[1])
with bank:
    print(oncekey.open("sqlite:///orders.db").once(f"order:{number}", pay, number))
