"""Several processes on one ledger: duplicates run once or attach, and nobody starves."""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import oncekey
from tests.fixtures.caller import Answer, acall
from tests.fixtures.claimant import Claimant
from tests.fixtures.processes import CONTEXT, Start
from tests.fixtures.shop import Effects
from tests.fixtures.street import Order, Street

PROCESSES, THREADS, KEYS = 4, 4, 15
BURSTS, CROWD = 60, 24
# How many claims the fastest of the processes makes before they are compared.
RACE = 200


@pytest.fixture
def shops(url: str, tmp_path: Path) -> Iterator[Street]:
    made = Street(url, tmp_path)
    yield made
    made.close()


# -- the ledger itself -------------------------------------------------------------------


def rush(said: Any, url: str, folder: Path) -> None:
    """Every thread wants every key; some wait for the answer, some do not."""
    ledger, effects, told = oncekey.open(url), Effects(folder), Counter[str]()
    said.send("ready")
    said.recv()

    def want(number: int) -> None:
        claimant = Claimant(ledger)
        for key in (f"k{index}" for index in range(KEYS)):
            decision = claimant.begin(key, wait=60.0 if number % 2 else 0.0)
            if decision == "Proceed":
                effects.add(key, "x")
                decision += claimant.settle(key)
            told[f"{'wait' if number % 2 else 'look'} {decision}"] += 1

    threads = [threading.Thread(target=want, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    said.send(told)


def test_of_all_threads_of_all_processes_one_runs_each_key(
    start: Start, url: str, tmp_path: Path
) -> None:
    processes = [start(rush, url, tmp_path) for _ in range(PROCESSES)]
    for process in processes:
        assert process.hear() == "ready"
    for process in processes:
        process.tell("go")
    told = sum((process.hear() for process in processes), Counter[str]())
    assert {f"k{index}": len(Effects(tmp_path).of(f"k{index}")) for index in range(KEYS)} == {
        f"k{index}": 1 for index in range(KEYS)
    }
    ran = told["wait Proceedsettled"] + told["look Proceedsettled"]
    # Whoever waits gets the answer; whoever only looks may be told that it is on its way.
    assert ran == KEYS
    assert ran + told["wait Replay"] + told["look Replay"] + told["look Busy"] == told.total()
    assert told.total() == PROCESSES * THREADS * KEYS


def race(said: Any, url: str, counts: Any, number: int) -> None:
    claimant = Claimant(oncekey.open(url))
    said.send("ready")
    said.recv()
    while max(counts) < RACE:
        key = f"p{number}-{counts[number]}"
        assert claimant.begin(key) == "Proceed"
        assert claimant.settle(key) == "settled"
        counts[number] += 1
    said.send("done")


def test_no_process_starves(start: Start, url: str) -> None:
    counts = CONTEXT.Array("i", PROCESSES, lock=False)
    processes = [start(race, url, counts, number) for number in range(PROCESSES)]
    for process in processes:
        assert process.hear() == "ready"
    for process in processes:
        process.tell("go")
    for process in processes:
        assert process.hear() == "done"
    # In a fair world all are equal; a process that starves has next to nothing.
    assert min(counts) * 5 > max(counts), list(counts)


# -- over HTTP ---------------------------------------------------------------------------


async def burst(ports: list[int], key: str) -> list[Answer]:
    """Duplicates of one request at the same moment, dealt out to the processes."""
    calls = [acall(ports[number % len(ports)], "/rerun", key) for number in range(CROWD)]
    answers = await asyncio.gather(*calls)
    assert None not in answers
    return [answer for answer in answers if answer]


@pytest.mark.parametrize("workers", [1, 2])
def test_bursts_of_duplicates_run_once_and_never_fail(shops: Street, workers: int) -> None:
    """Some ask servers that let them attach, some servers that tell them of the conflict."""
    kinds = ["attach", "conflict"] if workers == 2 else ["conflict"]
    ports = [shops.open(in_flight=kind).port for kind in kinds]

    async def run() -> None:
        for number in range(BURSTS):
            answers = await burst(ports, f"k{number}")
            final = {answer.body for answer in answers if answer.status == 201}
            others = {answer.problem for answer in answers if answer.status != 201}
            assert len(final) == 1
            assert others <= {"request-in-progress"}
            assert sum(answer.status == 201 and not answer.replayed for answer in answers) == 1

    asyncio.run(run())
    assert [len(shops.effects(f"k{number}")) for number in range(BURSTS)] == [1] * BURSTS


def test_a_request_attaches_to_one_that_another_process_runs(shops: Street) -> None:
    one, two = shops.open(), shops.open()
    first = one.order("/held", "k")
    attached = [Order(two, "/held", "k") for _ in range(3)]
    one.go()
    answer = first.answer()
    for each in attached:
        joined = each.answer()
        assert (joined.status, joined.body, joined.replayed) == (201, answer.body, True)
    assert shops.effects("k") == [answer.json["execution"]]
