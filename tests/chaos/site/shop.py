"""The application that is served: one path for each promise that the ledger makes to a handler.

The body of a request says what is to happen: `job`, `v` (which body it is), `slow` (seconds), and
`fails`, the chance that an attempt fails before it has done anything.
"""

import asyncio
import json
import os
import random
import secrets
import sqlite3
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import Any

import msgspec
import psycopg

from oncekey import Claim, DidNotHappen, Kind, Operation, Outcome
from tests.chaos.history import Effect, now, read
from tests.chaos.site import marks

Scope = dict[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]

INSERT = "INSERT INTO chaos_effects (line) VALUES ({})"
# SQLite lets nobody else write meanwhile.
LONGEST_TRANSACTION = 0.1
SERVER = os.environ.get("CHAOS_SERVER", "")


async def app(scope: Scope, receive: Any, send: Send) -> None:
    if scope["type"] == "lifespan":
        await _live(receive, send)
        return
    asked = json.loads(await _body(receive))
    claim: Claim = scope["oncekey.claim"]
    await asyncio.sleep(asked["slow"])
    if random.random() < asked["fails"]:
        await _answer(send, 500, b'{"fails": true}')
        return
    place, key = scope["path"], claim.operation.ref.key
    if place == "/app/within":
        answer = await asyncio.to_thread(_carry_out_within, claim, asked, key)
    else:
        mark = marks.effect(asked["job"], place, "", key, asked["v"])
        answer = answer_of(mark)
    await asyncio.sleep(asked["slow"])
    await _answer(send, 201, answer)


def recover(operation: Operation) -> Outcome | DidNotHappen:
    """What the shop finds of an order whose process died."""
    for event in read(marks.effects_file()):
        found = isinstance(event, Effect) and event.place == "/app/recover"
        if found and event.key == operation.ref.key:
            return outcome_of(answer_of(event.mark))
    return DidNotHappen()


def answer_of(mark: str) -> bytes:
    return json.dumps({"mark": mark}).encode()


def outcome_of(body: bytes) -> Outcome:
    return Outcome(Kind.RESPONSE, 201, ((b"content-type", b"application/json"),), body)


def _carry_out_within(claim: Claim, asked: Any, key: str) -> bytes:
    """The effect is a row in the ledger's own database, in one transaction with the outcome."""
    mark = secrets.token_hex(6)
    line = Effect(now(), asked["job"], "/app/within", "", key, asked["v"], mark, SERVER)
    body = answer_of(mark)
    with _connection() as (connection, sign):
        connection.execute(INSERT.format(sign), (_line_of(line),))
        claim.settle(outcome_of(body), transaction=connection)
        # Neither is there before the other; a kill that comes here finds out.
        time.sleep(min(asked["slow"], LONGEST_TRANSACTION))
        connection.commit()
    return body


def _connection() -> Any:
    url = os.environ["ONCEKEY_STORE__URL"]
    if url.startswith("sqlite"):
        return _Sqlite(url.removeprefix("sqlite:///"))
    return _Postgres(url)


class _Sqlite:
    def __init__(self, path: str) -> None:
        self._line = closing(sqlite3.connect(path, timeout=10))

    def __enter__(self) -> tuple[Any, str]:
        return self._line.__enter__(), "?"

    def __exit__(self, *raised: object) -> None:
        self._line.__exit__(*raised)


class _Postgres:
    def __init__(self, url: str) -> None:
        self._line = closing(psycopg.connect(url, connect_timeout=5))

    def __enter__(self) -> tuple[Any, str]:
        return self._line.__enter__(), "%s"

    def __exit__(self, *raised: object) -> None:
        self._line.__exit__(*raised)


def _line_of(event: Effect) -> str:
    return msgspec.json.encode(event).decode()


async def _body(receive: Any) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


async def _answer(send: Send, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _live(receive: Any, send: Send) -> None:
    for word in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{word}.complete"})
