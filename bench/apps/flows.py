"""A process that runs workflows on one engine, as its standard input orders.

Orders, each answered with one line of JSON: `run STEPS CONCURRENCY SECONDS` (workflows per second),
`resume COUNT` (from resolving to the next line of the workflow, one at a time, idle in between),
`fill COUNT` (workflows that wait), `revive COUNT` (they all wait again, and can go on), `wake FIRST
LAST` (those that wait from one place to another, all at once), `rest SECONDS` (what idling costs).
"""

import asyncio
import json
import sys
import time
from itertools import count
from secrets import token_hex
from typing import Any, Protocol

from bench.apps.latencies import percentiles
from bench.apps.memory import resident_mb
from bench.apps.witness import WITNESS

# Long enough for an engine to have come to rest before the next resolution is timed.
IDLE_SECONDS = 0.03
STARTERS = 256
REVIVED = 20
REVIVED_PLACES: set[int] = set()
# Whatever is waited for longer than this does not come.
LOST_SECONDS = 60.0


class Flows(Protocol):
    """An engine with the workflows of the bench: one step, three steps, and one that waits."""

    async def open(self) -> None: ...
    async def close(self) -> None: ...
    async def run(self, steps: int, number: int) -> Any: ...
    async def wait(self, key: str) -> None: ...
    async def all_wait(self, number: int) -> None: ...
    async def all_wait_again(self, number: int) -> None: ...
    async def resolve(self, key: str, value: int) -> None: ...


async def _run(flows: Flows, steps: int, concurrency: int, seconds: float) -> dict[str, float]:
    latencies: list[float] = []
    wrong, step_runs, numbers = 0, WITNESS.step_runs, count()
    started = time.perf_counter()

    async def caller() -> None:
        nonlocal wrong
        while (begun := time.perf_counter()) < started + seconds:
            number = next(numbers)
            wrong += await flows.run(steps, number) != number + steps
            latencies.append(time.perf_counter() - begun)

    await asyncio.gather(*(caller() for _ in range(concurrency)))
    elapsed = time.perf_counter() - started
    return {
        "workflows": len(latencies),
        "seconds": elapsed,
        "rate": len(latencies) / elapsed,
        "wrong": wrong,
        "extra_steps": WITNESS.step_runs - step_runs - steps * len(latencies),
        **percentiles(latencies),
    }


async def _resume(flows: Flows, number: int) -> dict[str, float]:
    latencies, wrong, prefix = [], 0, token_hex(6)
    for value in range(number):
        key = f"{prefix}-{value}"
        entries = WITNESS.entries
        await flows.wait(key)
        await flows.all_wait(entries + 1)
        await asyncio.sleep(IDLE_SECONDS)
        resumption = WITNESS.resumption(key)
        resolved = time.perf_counter()
        await flows.resolve(key, value)
        found = await asyncio.wait_for(resumption, LOST_SECONDS)
        latencies.append(found.at - resolved)
        wrong += found.value != value
    return {"resumed": number, "wrong": wrong, **percentiles(latencies)}


async def _fill(flows: Flows, number: int) -> dict[str, float]:
    before, started = resident_mb(), time.perf_counter()
    numbers, entries = iter(range(number)), WITNESS.entries

    async def starter() -> None:
        for each in numbers:
            await flows.wait(_waiting_key(each))

    await asyncio.gather(*(starter() for _ in range(STARTERS)))
    await flows.all_wait(entries + number)
    return {
        "waiting": number,
        "seconds": time.perf_counter() - started,
        "empty_mb": before,
        "resident_mb": resident_mb(),
    }


async def _revive(flows: Flows, number: int) -> dict[str, float]:
    """Everybody waits again; a few of them, from the first to the last, are resolved and go on."""
    await flows.all_wait_again(number)
    resident = resident_mb()
    chosen = sorted({*range(0, number, max(1, number // REVIVED)), *range(number)[-1:]})
    REVIVED_PLACES.update(chosen)
    resumptions = [WITNESS.resumption(_waiting_key(each)) for each in chosen]
    for each in chosen:
        await flows.resolve(_waiting_key(each), each)
    found = await asyncio.wait_for(asyncio.gather(*resumptions), LOST_SECONDS)
    wrong = sum(got.value != each for each, got in zip(chosen, found, strict=True))
    return {"waiting": number, "revived": len(found), "wrong": wrong, "resident_mb": resident}


async def _wake(flows: Flows, first: int, last: int) -> dict[str, float]:
    """Many are resolved at once; the last of them has gone on when this ends."""
    chosen = [each for each in range(first, last) if each not in REVIVED_PLACES]
    resumptions = [WITNESS.resumption(_waiting_key(each)) for each in chosen]
    numbers = iter(chosen)
    started = time.perf_counter()

    async def resolver() -> None:
        for each in numbers:
            await flows.resolve(_waiting_key(each), each)

    await asyncio.gather(*(resolver() for _ in range(STARTERS)))
    resolved = time.perf_counter() - started
    found = await asyncio.wait_for(asyncio.gather(*resumptions), LOST_SECONDS)
    seconds = time.perf_counter() - started
    wrong = sum(got.value != each for each, got in zip(chosen, found, strict=True))
    return {
        "woken": len(chosen),
        "resolved_seconds": resolved,
        "seconds": seconds,
        "rate": len(chosen) / seconds,
        "wrong": wrong,
        "resident_mb": resident_mb(),
    }


async def _rest(seconds: float) -> dict[str, float]:
    """The share of a core that is taken while nothing happens."""
    used, started = time.process_time(), time.perf_counter()
    await asyncio.sleep(seconds)
    elapsed = time.perf_counter() - started
    share = (time.process_time() - used) / elapsed
    return {"seconds": elapsed, "cores": share, "resident_mb": resident_mb()}


def _waiting_key(number: int) -> str:
    return f"waiting-{number}"


async def _carry_out(flows: Flows, order: list[str]) -> dict[str, float]:
    match order:
        case ["run", steps, concurrency, seconds]:
            return await _run(flows, int(steps), int(concurrency), float(seconds))
        case ["resume", number]:
            return await _resume(flows, int(number))
        case ["fill", number]:
            return await _fill(flows, int(number))
        case ["revive", number]:
            return await _revive(flows, int(number))
        case ["wake", first, last]:
            return await _wake(flows, int(first), int(last))
        case ["rest", seconds]:
            return await _rest(float(seconds))
        case _:
            raise ValueError(f"no such order: {order}")


async def orders_of_stdin() -> asyncio.StreamReader:
    """Not through the loop's executor: its few threads belong to the engine."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


async def _serve(flows: Flows) -> None:
    orders = await orders_of_stdin()
    await flows.open()
    while line := await orders.readline():
        print(json.dumps(await _carry_out(flows, line.decode().split())), flush=True)
    await flows.close()


def _flows_of(product: str, url: str, *options: str) -> Flows:
    if product == "oncekey":
        from bench.apps.flows_oncekey import OncekeyFlows

        return OncekeyFlows(url)
    from bench.apps.flows_dbos import DbosFlows

    return DbosFlows(url, "soonest" in options)


def main() -> None:
    import uvloop

    uvloop.run(_serve(_flows_of(*sys.argv[1:])))


if __name__ == "__main__":
    main()
