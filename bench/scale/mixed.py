"""A mix of requests at a steady rate: what comes next does not wait for what came before.

A latency counts from when the request was due, so that a server which stands still is seen to.
"""

import asyncio
import hmac
import json
import random
import time
from collections import deque
from contextlib import suppress
from secrets import token_hex
from typing import Generic, NamedTuple, TypeVar

from bench.load import Connection

CONNECTIONS = 64
# Well before what was kept is past its time.
RECENT_SECONDS = 30.0
_GOOD = {
    "new": {201},
    "replay": {201},
    "mismatch": {422},
    "twice": {201, 409},
    "start": {201},
    "deliver": {200},
    "redeliver": {200, 503},
    "promise": {201},
    "resolve": {200},
}
_WEIGHTS = {
    "new": 40,
    "replay": 25,
    "mismatch": 5,
    "twice": 4,
    "start": 9,
    "deliver": 9,
    "redeliver": 5,
    "promise": 2,
}


class Target(NamedTuple):
    port: int
    caller: str
    """The API key of whoever starts and resolves."""
    webhook: str
    secret: str


class Answered(NamedTuple):
    kind: str
    seconds: float
    is_good: bool


T = TypeVar("T")


class Recent(Generic[T]):
    """What was done a short while ago, to be asked for again."""

    def __init__(self) -> None:
        self._added: deque[tuple[float, T]] = deque()

    def __bool__(self) -> bool:
        while self._added and self._added[0][0] < time.monotonic() - RECENT_SECONDS:
            self._added.popleft()
        return bool(self._added)

    def add(self, what: T) -> None:
        self._added.append((time.monotonic(), what))

    def any(self) -> T:
        return random.choice(self._added)[1]


class Mixed:
    def __init__(self, target: Target, rate: float) -> None:
        self._target = target
        self._rate = rate
        self._prefix = token_hex(4)
        self._free: asyncio.Queue[Connection] = asyncio.Queue()
        self._orders = Recent[str]()
        self._started: deque[str] = deque()
        self._delivered = Recent[bytes]()
        self._tasks: set[asyncio.Task[None]] = set()
        self._number = 0
        self._statuses: dict[str, dict[int, int]] = {}
        self.answered: list[Answered] = []

    def take(self) -> list[Answered]:
        """What was answered since this was asked last."""
        found, self.answered = self.answered, []
        return found

    @property
    def statuses(self) -> dict[str, dict[int, int]]:
        """How often each kind was answered in each way; 0 stands for a broken connection."""
        return self._statuses

    async def run(self, seconds: float) -> None:
        for _ in range(CONNECTIONS):
            self._free.put_nowait(await self._connect())
        began = time.perf_counter()
        kinds, weights = list(_WEIGHTS), list(_WEIGHTS.values())
        for place in range(int(seconds * self._rate)):
            due = began + place / self._rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            task = asyncio.create_task(self._do(random.choices(kinds, weights)[0], due))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        await asyncio.gather(*self._tasks)
        while not self._free.empty():
            self._free.get_nowait().close()

    async def _do(self, kind: str, due: float) -> None:
        """One of its kind; a new key where there is nothing to repeat so far."""
        key = self._next()
        match kind:
            case "replay" if self._orders:
                await self._ask(kind, due, self._order(self._orders.any()))
            case "mismatch" if self._orders:
                await self._ask(kind, due, self._order(self._orders.any(), "other"))
            case "twice":
                both = (self._ask(kind, due, self._order(key)) for _ in range(2))
                await asyncio.gather(*both)
            case "start":
                await self._begin(key, due)
            case "deliver" if self._started:
                await self._deliver(due)
            case "redeliver" if self._delivered:
                await self._ask(kind, due, self._delivered.any())
            case "promise":
                await self._promise_and_resolve(key, due)
            case _:
                if await self._ask("new", due, self._order(key)):
                    self._orders.add(key)

    async def _begin(self, key: str, due: float) -> None:
        if await self._ask("start", due, self._start(key)):
            self._started.append(key)

    async def _deliver(self, due: float) -> None:
        delivery = self._delivery(self._started.popleft())
        if await self._ask("deliver", due, delivery):
            self._delivered.add(delivery)

    async def _promise_and_resolve(self, key: str, due: float) -> None:
        if await self._ask("promise", due, self._promise(key)):
            await self._ask("resolve", time.perf_counter(), self._resolve(key))

    async def _ask(self, kind: str, due: float, request: bytes) -> bool:
        connection = await self._free.get()
        status = 0
        try:
            status = await asyncio.wait_for(connection.ask(request), 30)
        except (OSError, TimeoutError):
            connection.close()
            # A server that is away is asked again by the next one.
            with suppress(OSError):
                connection = await self._connect()
        finally:
            self._free.put_nowait(connection)
        counted = self._statuses.setdefault(kind, {})
        counted[status] = counted.get(status, 0) + 1
        is_good = status in _GOOD[kind]
        self.answered.append(Answered(kind, time.perf_counter() - due, is_good))
        return is_good

    async def _connect(self) -> Connection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(Connection, "127.0.0.1", self._target.port)
        return connection

    def _next(self) -> str:
        self._number += 1
        return f"{self._prefix}-{self._number}"

    # -- requests ------------------------------------------------------------------------------

    def _order(self, key: str, item: str = "book") -> bytes:
        return _post("/orders", {"item": item}, f"Idempotency-Key: {key}\r\n")

    def _start(self, key: str) -> bytes:
        path = "/api/tenants/default/workflows/order/start"
        return _post(path, {"input": key}, f"{self._bearer}Idempotency-Key: {key}\r\n")

    def _promise(self, key: str) -> bytes:
        made = {"name": "paid", "key": f"p:{key}", "key_ttl": "60s"}
        return _post("/api/tenants/default/promises", made, self._bearer)

    def _resolve(self, key: str) -> bytes:
        path = f"/api/tenants/default/promises/key:p:{key}/resolve"
        return _post(path, {"value": 1}, self._bearer)

    def _delivery(self, key: str) -> bytes:
        body = json.dumps({"id": key}).encode()
        signed = hmac.digest(self._target.secret.encode(), body, "sha256").hex()
        lines = f"X-GitHub-Delivery: d-{key}\r\nX-Hub-Signature-256: sha256={signed}\r\n"
        return _post(f"/api/v1/webhooks/github/{self._target.webhook}", {"id": key}, lines)

    @property
    def _bearer(self) -> str:
        return f"Authorization: Bearer {self._target.caller}\r\n"


def _post(path: str, value: object, lines: str) -> bytes:
    body = json.dumps(value).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"{lines}Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
