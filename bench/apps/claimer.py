"""A process that claims and settles through the ledger, without HTTP, as its standard input orders.

Orders: `claim SECONDS`, `replay FIRST LAST SECONDS` (stored keys, at random), `sweep SECONDS`
(claims until a sweep has run through, or so long), `arrive` (what opening and a first claim took),
`hold PREFIX COUNT` and `take PREFIX COUNT` (for a process that is killed, and the next), `memory`.
Each is answered with one line of JSON: pairs of claim and settle, seconds, p50 and p99 in ms, and
processor time for each, which says more than the clock where others are at work too.
"""

import asyncio
import json
import random
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import count
from secrets import token_hex
from threading import Thread
from typing import Any

import oncekey
from bench.apps.latencies import percentiles
from bench.apps.memory import resident_mb
from oncekey.core.decision import Proceed, Replay
from oncekey.core.model import Kind, Operation, Outcome, Ref
from oncekey.core.scope import Scope

CALLERS = 64
SCOPE = Scope("t-default:_tenant:client:anonymous", "POST /orders")
FINGERPRINT = b"f" * 16
SETTLED = Outcome(
    Kind.RESPONSE, 201, ((b"content-type", b"application/json"),), b'{"id":"ord_1","ok":true}'
)
LOOK_SECONDS = 0.02

_fresh = count()
_prefix = token_hex(6)

Turn = Callable[[], Awaitable[float]]
"""One turn of a caller; its latency in seconds."""


class Enough(Exception):
    """A sweep has lasted as long as it may."""


def stored_key(number: int) -> str:
    """Of the key that a filled store has at this place."""
    return f"order-{number}"


def _operation(key: str | None = None) -> Operation:
    return Operation(Ref(SCOPE, key or f"{_prefix}-{next(_fresh)}"), FINGERPRINT)


class Orders:
    def __init__(self, url: str, lease: float, cache_bytes: int) -> None:
        began = time.perf_counter()
        # Nothing is swept but by order.
        self.ledger = oncekey.open(url, lease=lease, cache_bytes=cache_bytes, sweep_interval=0.0)
        self._opened = time.perf_counter() - began
        self._wrong = 0

    async def carry_out(self, order: list[str]) -> dict[str, float]:
        match order:
            case ["claim", seconds]:
                return await self._repeat(self._claim, _lasting(float(seconds)))
            case ["replay", first, last, seconds]:
                turn = self._replay_of(int(first), int(last))
                return await self._repeat(turn, _lasting(float(seconds)))
            case ["sweep", seconds]:
                return await self._claim_while_sweeping(float(seconds))
            case ["arrive"]:
                first = await self._claim()
                return {"open_ms": self._opened * 1e3, "first_ms": first * 1e3}
            case ["hold", prefix, number]:
                return await self._hold(prefix, int(number))
            case ["take", prefix, number]:
                return await self._take(prefix, int(number))
            case ["memory"]:
                return {"resident_mb": resident_mb()}
            case _:
                raise ValueError(f"no such order: {order}")

    async def _claim(self) -> float:
        started = time.perf_counter()
        decision: Any = await self.ledger.abegin(_operation())
        took = time.perf_counter() - started
        await decision.claim.asettle(SETTLED)
        return took

    def _replay_of(self, first: int, last: int) -> Turn:
        async def replay() -> float:
            operation = _operation(stored_key(random.randrange(first, last)))
            started = time.perf_counter()
            decision = await self.ledger.abegin(operation)
            took = time.perf_counter() - started
            self._wrong += not (isinstance(decision, Replay) and decision.record.outcome == SETTLED)
            # From memory the answer comes at once, and others must have their turn too.
            await asyncio.sleep(0)
            return took

        return replay

    async def _repeat(self, turn: Turn, is_over: Callable[[], bool]) -> dict[str, float]:
        latencies: list[float] = []
        self._wrong = 0

        async def caller() -> None:
            # Once at least: a sweep of nothing may be over before anybody begins.
            latencies.append(await turn())
            while not is_over():
                latencies.append(await turn())

        started, used = time.perf_counter(), time.process_time()
        await asyncio.gather(*(caller() for _ in range(CALLERS)))
        seconds, used = time.perf_counter() - started, time.process_time() - used
        return {
            "pairs": len(latencies),
            "seconds": seconds,
            "rate": len(latencies) / seconds,
            **percentiles(latencies),
            "cpu_us": used / len(latencies) * 1e6,
            "wrong": self._wrong,
        }

    async def _claim_while_sweeping(self, seconds: float) -> dict[str, float]:
        swept = [0]
        is_over = _lasting(seconds)

        def progress(done: int, _: int) -> None:
            swept[0] = done
            if is_over():
                raise Enough

        def sweep() -> None:
            try:
                self.ledger.sweep(progress)
            except Enough:
                return

        sweeping = Thread(target=sweep)
        sweeping.start()
        found = await self._repeat(self._claim, lambda: not sweeping.is_alive())
        return {**found, "swept": swept[0], "ended": float(not is_over())}

    async def _hold(self, prefix: str, number: int) -> dict[str, float]:
        for place in range(number):
            decision = await self.ledger.abegin(_operation(f"{prefix}-{place}"))
            assert isinstance(decision, Proceed), decision
        return {"held": number}

    async def _take(self, prefix: str, number: int) -> dict[str, float]:
        """Asks for what a killed process held until it is ours, and settles it."""
        started = time.perf_counter()
        first = 0.0
        for place in range(number):
            decision = await self.ledger.abegin(_operation(f"{prefix}-{place}"))
            while not isinstance(decision, Proceed):
                await asyncio.sleep(LOOK_SECONDS)
                decision = await self.ledger.abegin(_operation(f"{prefix}-{place}"))
            first = first or time.perf_counter() - started
            await decision.claim.asettle(SETTLED)
        return {"first_ms": first * 1e3, "all_ms": (time.perf_counter() - started) * 1e3}


def _lasting(seconds: float) -> Callable[[], bool]:
    deadline = time.perf_counter() + seconds
    return lambda: time.perf_counter() >= deadline


def main() -> None:
    import uvloop

    orders = Orders(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for line in sys.stdin:
            print(json.dumps(runner.run(orders.carry_out(line.split()))), flush=True)
    orders.ledger.close()


if __name__ == "__main__":
    main()
