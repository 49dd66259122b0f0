"""Duplicates that attach to what their own process runs."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import oncekey
from oncekey.core.clock import SystemClock
from oncekey.core.decision import Proceed, Replay
from oncekey.core.ledger import Ledger
from oncekey.core.model import Kind, Operation, Outcome, Ref
from oncekey.core.ports import Request, Waiter
from oncekey.core.scope import Scope
from oncekey.stores.memory.store import MemoryStore
from oncekey.stores.values import JsonCodec

WAIT = 30.0
DONE = Outcome(Kind.VALUE, body=b'"done"')
CROWD = 20

pytestmark = pytest.mark.anyio


class CountingStore(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def submit(self, request: Request, waiter: Waiter) -> None:
        self.asked += 1
        super().submit(request, waiter)


def operation(key: str = "k") -> Operation:
    return Operation(Ref(Scope("t-default:_tenant:client:anonymous", "POST /a"), key))


@pytest.fixture
def store() -> CountingStore:
    return CountingStore()


@pytest.fixture
def ledger(store: CountingStore) -> Iterator[Ledger]:
    opened = Ledger(store, codec=JsonCodec(), clock=SystemClock(), sweep_interval=0)
    yield opened
    opened.close()


async def attached(ledger: Ledger, number: int) -> list[asyncio.Task[Any]]:
    tasks = [asyncio.create_task(ledger.abegin(operation(), wait=WAIT)) for _ in range(number)]
    await asyncio.sleep(0)
    return tasks


async def test_they_do_not_ask_the_store(ledger: Ledger, store: CountingStore) -> None:
    first = await ledger.abegin(operation(), wait=WAIT)
    assert isinstance(first, Proceed)
    others = await attached(ledger, CROWD)
    await first.claim.asettle(DONE)
    answers = await asyncio.gather(*others)
    assert all(isinstance(each, Replay) and each.record.outcome == DONE for each in answers)
    # One claim and one outcome.
    assert store.asked == 2


async def test_one_of_them_runs_when_the_first_lets_go(ledger: Ledger) -> None:
    first = await ledger.abegin(operation(), wait=WAIT)
    assert isinstance(first, Proceed)
    others = await attached(ledger, 2)
    await first.claim.arelease()
    done, _ = await asyncio.wait(others, return_when=asyncio.FIRST_COMPLETED)
    (winner,) = done
    assert isinstance(winner.result(), Proceed)
    await winner.result().claim.asettle(DONE)
    assert {type(await each) for each in others} == {Proceed, Replay}


async def test_a_first_that_never_got_its_claim_keeps_nobody_waiting(tmp_path: Path) -> None:
    ledger = oncekey.open(f"sqlite:///{tmp_path}/oncekey.db")
    first = asyncio.create_task(ledger.abegin(operation(), wait=WAIT))
    await asyncio.sleep(0)
    (other,) = await attached(ledger, 1)
    first.cancel()
    decision = await other
    assert isinstance(decision, Proceed)
    await decision.claim.asettle(DONE)
    await ledger.aclose()
