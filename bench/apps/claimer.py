"""A process that claims and settles through the ledger, without HTTP, as its standard input orders.

Orders: `claim SECONDS`, and `sweep` (claims until a sweep has run through). Each is answered
with one line of JSON: pairs of claim and settle, seconds, and p50 and p99 of the claims in ms.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from itertools import count
from secrets import token_hex
from threading import Thread
from typing import Any

import oncekey
from oncekey.core.model import Kind, Operation, Outcome, Ref
from oncekey.core.scope import Scope

CALLERS = 64
SETTLED = Outcome(
    Kind.RESPONSE, 201, ((b"content-type", b"application/json"),), b'{"id":"ord_1","ok":true}'
)

_fresh = count()
_prefix = token_hex(6)


def _operation(fingerprint: bytes = b"f" * 16) -> Operation:
    scope = Scope("t-default:_tenant:client:anonymous", "POST /orders")
    return Operation(Ref(scope, f"{_prefix}-{next(_fresh)}"), fingerprint)


async def _caller(ledger: Any, is_over: Callable[[], bool], latencies: list[float]) -> None:
    while not is_over():
        started = time.perf_counter()
        decision = await ledger.abegin(_operation())
        latencies.append(time.perf_counter() - started)
        await decision.claim.asettle(SETTLED)


async def _claim(ledger: Any, is_over: Callable[[], bool]) -> dict[str, float]:
    latencies: list[float] = []
    started = time.perf_counter()
    await asyncio.gather(*(_caller(ledger, is_over, latencies) for _ in range(CALLERS)))
    seconds = time.perf_counter() - started
    latencies.sort()
    return {
        "pairs": len(latencies),
        "seconds": seconds,
        "rate": len(latencies) / seconds,
        "p50_ms": latencies[len(latencies) // 2] * 1e3,
        "p99_ms": latencies[len(latencies) * 99 // 100] * 1e3,
    }


async def _claim_for(ledger: Any, seconds: float) -> dict[str, float]:
    deadline = time.perf_counter() + seconds
    return await _claim(ledger, lambda: time.perf_counter() >= deadline)


async def _claim_while_sweeping(ledger: Any) -> dict[str, float]:
    swept: list[int] = []
    sweeping = Thread(target=lambda: swept.append(ledger.sweep()))
    sweeping.start()
    found = await _claim(ledger, lambda: not sweeping.is_alive())
    return {**found, "swept": sum(swept)}


def _carry_out(ledger: Any, runner: asyncio.Runner, order: list[str]) -> dict[str, float]:
    match order:
        case ["claim", seconds]:
            return runner.run(_claim_for(ledger, float(seconds)))
        case ["sweep"]:
            return runner.run(_claim_while_sweeping(ledger))
        case _:
            raise ValueError(f"no such order: {order}")


def main() -> None:
    import uvloop

    ledger = oncekey.open(sys.argv[1])
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for line in sys.stdin:
            print(json.dumps(_carry_out(ledger, runner, line.split())), flush=True)
    ledger.close()


if __name__ == "__main__":
    main()
