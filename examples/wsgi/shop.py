"""Orders by plain WSGI: no framework, and a middleware around it."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from wsgiref.types import StartResponse

import oncekey
from oncekey.wsgi import IdempotencyMiddleware


def shop(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
    item = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    with Path("orders.txt").open("ab") as orders:
        orders.write(item + b"\n")
    start_response("201 Created", [("Content-Type", "text/plain")])
    return [b"%s is ordered, by worker %d\n" % (item, os.getpid())]


# Opened before gunicorn forks its workers; each of them goes on with it by itself.
app = IdempotencyMiddleware(shop, ledger=oncekey.open("sqlite:///oncekey.db"))
