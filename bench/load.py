"""Load: wrk for throughput, and a small asyncio client for bursts of duplicates."""

import asyncio
import json
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from httptools import HttpResponseParser

from bench.machine import LOAD_CPU, pinned

CONNECTIONS = 64
ORDERS = "/orders"
REPOLL_SECONDS = 0.025
BURST_SECONDS = 15.0
STORED_SECONDS = 60.0
IN_FLIGHT = frozenset({409, 423, 425, 429})

_LUA = Path(__file__).parent / "lua"


class LoadFailed(Exception):
    """The load generator itself did not work, or a server stopped answering it."""


FAILURES = (LoadFailed, OSError, TimeoutError, subprocess.TimeoutExpired)


@dataclass(frozen=True)
class Sample:
    """One run of wrk against one server."""

    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float
    refused: int
    broken: int

    @property
    def rate(self) -> float:
        """Useful answers per second: a refusal is fast, but nobody asked for one."""
        return (self.requests - self.refused) / self.seconds

    def figures(self) -> dict[str, float]:
        return {**asdict(self), "rate": self.rate}


def wrk(
    port: int,
    script: str,
    seconds: int,
    *arguments: str,
    path: str = ORDERS,
    cpu: int | None = LOAD_CPU,
) -> Sample:
    command = [
        "wrk",
        "-t1",
        f"-c{CONNECTIONS}",
        f"-d{seconds}s",
        "--timeout",
        "10s",
        "-s",
        str(_LUA / script),
    ]
    command += [f"http://127.0.0.1:{port}{path}", "--", *arguments]
    run = subprocess.run(
        pinned(cpu, command), capture_output=True, text=True, timeout=seconds + 30, check=False
    )
    last = run.stdout.strip().splitlines()[-1:] or [run.stderr.strip()]
    try:
        return Sample(**json.loads(last[0]))
    except (ValueError, TypeError) as error:
        raise LoadFailed(f"wrk: {last[0][:200]} {run.stderr[-200:]}") from error


@dataclass(frozen=True)
class Burst:
    """Sixty-four duplicates of one key: when the last caller had its answer, and at what price."""

    last_answer_ms: float
    requests: int
    conflicts: int
    failures: int


class Connection(asyncio.Protocol):
    """One keep-alive connection, one request at a time."""

    def __init__(self) -> None:
        self._parser: Any = None
        self._answer: asyncio.Future[int] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def ask(self, request: bytes) -> asyncio.Future[int]:
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        if self._transport.is_closing():
            self.connection_lost(None)
            return self._answer
        self._parser = HttpResponseParser(self)
        self._transport.write(request)
        return self._answer

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        if self._answer and not self._answer.done():
            self._answer.set_result(self._parser.get_status_code())

    def connection_lost(self, error: Exception | None) -> None:
        if self._answer and not self._answer.done():
            self._answer.set_exception(
                error or ConnectionResetError("the server closed the connection")
            )

    def close(self) -> None:
        if self._transport:
            self._transport.close()


async def connect(port: int, connections: int = CONNECTIONS) -> list[Connection]:
    loop = asyncio.get_running_loop()
    opened = [
        await loop.create_connection(Connection, "127.0.0.1", port) for _ in range(connections)
    ]
    return [protocol for _, protocol in opened]


def request_bytes(path: str, key: str, lines: str = "") -> bytes:
    """`lines`: further headers, each with its end."""
    body = b'{"item":"book","qty":1}'
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Idempotency-Key: {key}\r\n{lines}Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _until_final(connection: Connection, request: bytes) -> tuple[float, list[int]]:
    """Asks until the answer is final; after a conflict again 25 ms later, as a patient client."""
    statuses = [await connection.ask(request)]
    while statuses[-1] in IN_FLIGHT:
        await asyncio.sleep(REPOLL_SECONDS)
        statuses.append(await connection.ask(request))
    return time.perf_counter(), statuses


async def burst(connections: list[Connection], path: str, key: str) -> Burst:
    request = request_bytes(path, key)
    started = time.perf_counter()
    async with asyncio.timeout(BURST_SECONDS):
        answers = await asyncio.gather(*(_until_final(each, request) for each in connections))
    statuses = [status for _, asked in answers for status in asked]
    return Burst(
        last_answer_ms=(max(ended for ended, _ in answers) - started) * 1e3,
        requests=len(statuses),
        conflicts=sum(status in IN_FLIGHT for status in statuses),
        failures=sum(asked[-1] >= 400 for _, asked in answers),
    )


async def _stored(connections: list[Connection], requests: list[bytes]) -> set[bytes]:
    """Which of the requests got a good final answer."""
    found = set()
    for first in range(0, len(requests), len(connections)):
        batch = requests[first : first + len(connections)]
        asked = [_until_final(*pair) for pair in zip(connections, batch, strict=False)]
        answers = await asyncio.gather(*asked)
        found |= {
            request
            for request, (_, statuses) in zip(batch, answers, strict=True)
            if statuses[-1] < 400
        }
    return found


async def store_keys(
    port: int,
    prefix: str,
    number: int,
    attempts: int = 3,
    lines: str = "",
    path: str = ORDERS,
) -> None:
    """Finishes the keys that the replays will ask for again; a fault may pass, so a few times."""
    connections = await connect(port)
    keys = [f"{prefix}-{key}" for key in range(1, number + 1)]
    missing = [request_bytes(path, key, lines) for key in keys]
    try:
        async with asyncio.timeout(STORED_SECONDS):
            for _ in range(attempts):
                stored = await _stored(connections, missing)
                missing = [request for request in missing if request not in stored]
    finally:
        for connection in connections:
            connection.close()
    if missing:
        raise LoadFailed(f"{len(missing)} of {number} keys could not be stored")
