"""The service behind the edge, in a process that is never killed: it does whatever it is asked.

It listens on a port for each server, and so knows which of them asks.
"""

import asyncio
import json
import random
import socket
import sys
from typing import Any

import uvicorn

from tests.chaos.history import Effect, now
from tests.chaos.site.marks import add, new_mark


class Bank:
    def __init__(self, servers: dict[int, str]) -> None:
        self._servers = servers

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        asked = json.loads(await _body(receive))
        headers = dict(scope["headers"])
        who, key = owner_of(headers[b"idempotency-key"].decode())
        await asyncio.sleep(asked["slow"])
        if random.random() < asked["fails"]:
            await _answer(send, 500, {"fails": True})
            return
        mark, server = new_mark(), self._servers[scope["server"][1]]
        add(Effect(now(), asked["job"], scope["path"], who, key, asked["v"], mark, server))
        await asyncio.sleep(asked["slow"])
        await _answer(send, 201, {"mark": mark})


def owner_of(namespaced: str) -> tuple[str, str]:
    """`t-acme:shop:user:anna:k1` is anna's of acme."""
    tenant, project, _, subject, key = namespaced.removeprefix("t-").split(":", 4)
    return f"{tenant}/{project}/{subject}", key


async def _body(receive: Any) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


async def _answer(send: Any, status: int, told: Any) -> None:
    body = json.dumps(told).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def main(names: list[str]) -> None:
    """Serve each of these servers, and say the ports in their order."""
    sockets = [socket.create_server(("127.0.0.1", 0), backlog=256) for _ in names]
    ports = [each.getsockname()[1] for each in sockets]
    bank = Bank(dict(zip(ports, names, strict=True)))
    config = uvicorn.Config(bank, log_level="critical", access_log=False, lifespan="off")
    sys.stdout.write(" ".join(map(str, ports)) + "\n")
    sys.stdout.flush()
    uvicorn.Server(config).run(sockets=sockets)


if __name__ == "__main__":
    main(sys.argv[1:])
