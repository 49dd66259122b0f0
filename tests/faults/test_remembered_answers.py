"""Answers that a process remembers are never given after a purge elsewhere, or after their time."""

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import oncekey
from oncekey import Ledger, Ref, Scope
from oncekey.asgi import IdempotencyMiddleware
from tests.fixtures.bare import request
from tests.fixtures.caller import Answer
from tests.fixtures.claimant import claimant
from tests.fixtures.processes import Process, Start
from tests.fixtures.stores import until
from tests.fixtures.street import Server, Street

SHOP = Ref(Scope(oncekey.namespace_of(), "POST /rerun"), "k")
ROUNDS = 25


def remember(server: Server, key: str = "k") -> Answer:
    """Ask until the answer comes from as near as it ever does."""
    answers = [server.ask("/rerun", key) for _ in range(4)]
    assert {answer.body for answer in answers} == {answers[0].body}
    return answers[0]


@pytest.fixture
def operator(street: Street) -> Iterator[Ledger]:
    """Somebody else on the same file, who purges."""
    opened = oncekey.open(street.url)
    yield opened
    opened.close()


def test_a_purge_in_another_process_is_seen_by_the_next_request(
    street: Street, operator: Ledger
) -> None:
    servers = [street.open(), street.open()]
    for number in range(ROUNDS):
        answers = {remember(server).body for server in servers}
        assert len(answers) == 1
        assert len(street.effects("k")) == number + 1
        assert operator.purge(SHOP)


def test_a_purge_is_seen_by_whoever_asks_after_it_however_many_ask_meanwhile(
    street: Street, operator: Ledger
) -> None:
    servers = [street.open(), street.open()]
    remember(servers[0])
    done = threading.Event()

    def ask_on(server: Server) -> None:
        while not done.is_set():
            server.ask("/rerun", "k")

    crowd = [threading.Thread(target=ask_on, args=(server,)) for server in servers * 2]
    for each in crowd:
        each.start()
    try:
        for number in range(ROUNDS):
            old = street.effects("k")
            assert operator.purge(SHOP)
            answer = servers[number % 2].ask("/rerun", "k")
            assert answer.json["execution"] not in old
    finally:
        done.set()
        for each in crowd:
            each.join()


# -- a purger that dies ------------------------------------------------------------------


def purges(street: Street) -> int:
    """The number that all processes share: it changes with each purge, and is odd during one."""
    word = (street.folder / "oncekey.db-locks" / "purges").read_bytes()
    return int.from_bytes(word[:8], "little")


@contextmanager
def locked(street: Street) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(street.folder / "oncekey.db", isolation_level=None)) as file:
        file.execute("BEGIN IMMEDIATE")
        yield file
        file.execute("COMMIT")


def kill_while_it_purges(start: Start, street: Street) -> None:
    """In the middle: it has said that it purges, and cannot do it while the file is locked."""
    purger: Process = start(claimant, street.url, {})
    purger.tell(("begin", ("unrelated",), {}))
    purger.hear()
    with locked(street):
        purger.tell(("purge", ("unrelated",), {}))
        until(lambda: purges(street) % 2)
        purger.kill()


def test_a_purger_that_is_killed_leaves_answers_asked_for_and_right(
    start: Start, street: Street
) -> None:
    server = street.open()
    first = remember(server)
    kill_while_it_purges(start, street)
    assert purges(street) % 2
    # Nothing was purged: the answer stands, from the file.
    assert remember(server).body == first.body
    # As if it had died a moment later, between its commit and its last word.
    with locked(street) as file:
        file.execute("DELETE FROM oncekey_outcomes")
        file.execute("DELETE FROM oncekey_claims")
    assert remember(server).body != first.body
    assert len(street.effects("k")) == 2


def test_answers_are_remembered_again_after_the_next_start_or_purge(
    start: Start, street: Street, operator: Ledger
) -> None:
    server = street.open()
    remember(server)
    kill_while_it_purges(start, street)
    healed = street.open()
    assert purges(street) % 2 == 0
    assert remember(healed).body == remember(server).body
    kill_while_it_purges(start, street)
    assert operator.purge(SHOP)
    assert purges(street) % 2 == 0
    assert remember(server).body == remember(healed).body
    assert len(street.effects("k")) == 2


# -- expiry ------------------------------------------------------------------------------


class Clocks:
    def __init__(self) -> None:
        self.wall = 1_700_000_000_000

    def now(self) -> int:
        return self.wall

    def steady(self) -> int:
        return 0


class Counting:
    """An app that answers how often it was called."""

    def __init__(self) -> None:
        self.runs = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.runs += 1
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": str(self.runs).encode()})


async def post(app: Any) -> bytes:
    return b"".join([message.get("body", b"") for message in await request(app)])


def test_a_remembered_answer_expires_to_the_millisecond(tmp_path: Path) -> None:
    clocks, app = Clocks(), Counting()
    ledger = oncekey.open(f"sqlite:///{tmp_path}/oncekey.db", clock=clocks)
    protected = IdempotencyMiddleware(app, ledger=ledger)

    async def run() -> None:
        for number in range(1, 4):
            settled_at = clocks.wall
            for _ in range(4):
                assert await post(protected) == str(number).encode()
            clocks.wall = settled_at + 86_400_000 - 1
            assert await post(protected) == str(number).encode()
            clocks.wall += 1

    asyncio.run(run())
    ledger.close()
