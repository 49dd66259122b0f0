"""A process that makes and settles promises through the engine, as its standard input orders.

Orders, each answered with one line of JSON: `create FIRST LAST`, `resolve COUNT FIRST LAST` (by
key, places spread over a range), `find COUNT FIRST LAST`, `park COUNT` (resolutions without a
promise), `arrive` (what opening took), `memory`.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterable

from bench.apps.flows import orders_of_stdin
from bench.apps.flows_oncekey import app
from bench.apps.latencies import percentiles
from bench.apps.memory import resident_mb
from oncekey.core.execution import PromiseState
from oncekey.durable.address import ByKey

CALLERS = 64
TENANT = "default"
KEY_TTL = 24 * 3600.0


def promise_key(place: int) -> str:
    """Of the promise that a filled store has at this place."""
    return f"pay-{place}"


async def _create(place: int) -> bool:
    found = await app.engine.create_promise(TENANT, "paid", key=promise_key(place), key_ttl=KEY_TTL)
    return found.promise.state is PromiseState.PENDING


async def _resolve(place: int) -> bool:
    found = await app.resolve(f"key:{promise_key(place)}", place)
    return found.promise is not None and not found.already_resolved


async def _find(place: int) -> bool:
    found = await app.engine.promise(TENANT, ByKey(promise_key(place)))
    return found.key == promise_key(place)


async def _park(place: int) -> bool:
    found = await app.resolve(f"key:early-{place}", place, park=True)
    return found.promise is None


async def _repeat(
    verb: Callable[[int], Awaitable[bool]], places: Iterable[int]
) -> dict[str, float]:
    latencies: list[float] = []
    wrong, left = 0, iter(places)

    async def caller() -> None:
        nonlocal wrong
        for place in left:
            started = time.perf_counter()
            wrong += not await verb(place)
            latencies.append(time.perf_counter() - started)

    started = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    seconds = time.perf_counter() - started
    return {
        "count": len(latencies),
        "seconds": seconds,
        "rate": len(latencies) / seconds,
        **percentiles(latencies),
        "wrong": wrong,
    }


def _spread(number: str, first: str, last: str) -> range:
    """So many places from one to another, at even distances."""
    return range(int(first), int(last), max(1, (int(last) - int(first)) // int(number)))


async def _carry_out(order: list[str], opened: float) -> dict[str, float]:
    match order:
        case ["create", first, last]:
            return await _repeat(_create, range(int(first), int(last)))
        case ["resolve", number, first, last]:
            return await _repeat(_resolve, _spread(number, first, last))
        case ["find", number, first, last]:
            return await _repeat(_find, _spread(number, first, last))
        case ["park", number]:
            return await _repeat(_park, range(int(number)))
        case ["arrive"]:
            return {"open_ms": opened * 1e3}
        case ["memory"]:
            return {"resident_mb": resident_mb()}
        case _:
            raise ValueError(f"no such order: {order}")


async def _serve(url: str) -> None:
    orders, began = await orders_of_stdin(), time.perf_counter()
    async with app.open(url):
        opened = time.perf_counter() - began
        while line := await orders.readline():
            print(json.dumps(await _carry_out(line.decode().split(), opened)), flush=True)


def main() -> None:
    import uvloop

    uvloop.run(_serve(sys.argv[1]))


if __name__ == "__main__":
    main()
