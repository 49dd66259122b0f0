"""A payments service behind the edge, on a port of its own. It writes down what reaches it."""

import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

# Where `oncekey.toml` and the edge expect it.
URL = os.environ.get("ONCEKEY_UPSTREAMS__PAYMENTS__URL", "http://127.0.0.1:8701")

payments: list[dict[str, object]] = []


async def pay(request: Request) -> JSONResponse:
    payment = {
        "id": len(payments) + 1,
        "asked": await request.json(),
        "by": request.headers["x-subject"],
        "key": request.headers["idempotency-key"],
    }
    payments.append(payment)
    return JSONResponse(payment, status_code=201)


async def show(_: Request) -> JSONResponse:
    return JSONResponse(payments)


app = Starlette(
    routes=[
        Route("/api/v1/payments", pay, methods=["POST"]),
        Route("/api/v1/payments", show, methods=["GET"]),
    ]
)


@contextmanager
def running() -> Iterator[None]:
    """Served beside the quickstart, in a thread, so that one command is enough to try it."""
    at = urlsplit(URL)
    try:
        listening = socket.create_server((at.hostname or "", at.port or 80))
    except OSError as error:
        # Another worker, or another quickstart: payments are made there.
        print(
            f"payments: cannot listen on {URL} ({os.strerror(error.errno or 0)}); whoever does is "
            "asked. ONCEKEY_UPSTREAMS__PAYMENTS__URL names another address",
            file=sys.stderr,
        )
        yield
        return
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    serving = threading.Thread(target=server.run, args=([listening],), daemon=True)
    serving.start()
    try:
        yield
    finally:
        server.should_exit = True
        serving.join(5)
