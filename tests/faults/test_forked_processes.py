"""A ledger that was opened before a fork works on both sides of it, as two processes."""

import os
import select
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

import oncekey
from oncekey import Ledger
from tests.fixtures.claimant import Claimant, preloaded
from tests.fixtures.processes import CONTEXT, Start

FORKS = 12
THREADS = 4


class Teller:
    """Tells a process at the other end of a pipe what to do."""

    def __init__(self, line: Any) -> None:
        self._line = line

    def __call__(self, verb: str, *words: Any, **options: Any) -> Any:
        self._line.send((verb, words, options))
        return self._line.recv()


class Family:
    """A parent that opened the ledger, and the child it forked."""

    def __init__(self, start: Start, url: str, **options: Any) -> None:
        ours, theirs = CONTEXT.Pipe()
        self.process = start(preloaded, url, theirs, options)
        theirs.close()
        self.child_pid: int = ours.recv()
        self.child = Teller(ours)
        self.parent = Teller(self.process._ours)

    def kill_child(self) -> None:
        watch = os.pidfd_open(self.child_pid)
        os.kill(self.child_pid, signal.SIGKILL)
        select.select([watch], [], [])
        os.close(watch)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/oncekey.db"


def check_family(start: Start, url: str) -> None:
    family = Family(start, url)
    parent, child = family.parent, family.child
    assert child("begin", "before") == parent("begin", "before") == "Replay"
    assert parent("begin", "p") == child("begin", "c") == "Proceed"
    assert parent("begin", "c") == child("begin", "p") == "Busy"
    assert parent("owner") != child("owner")
    assert parent("settle", "p") == child("settle", "c") == "settled"
    assert parent("begin", "c") == child("begin", "p") == "Replay"
    # The parent leaves; what the child writes from now on is there for everyone.
    parent("close", 0.0)
    assert child("begin", "after") == "Proceed"
    assert child("settle", "after") == "settled"
    witness = Claimant(oncekey.open(url))
    assert {witness.begin(key) for key in ("before", "p", "c", "after")} == {"Replay"}
    witness.close(0)


def test_parent_and_child_are_two_processes(start: Start, url: str) -> None:
    check_family(start, url)


@pytest.mark.postgres
def test_parent_and_child_are_two_processes_on_postgres(start: Start, postgres_url: str) -> None:
    check_family(start, postgres_url)


def test_a_parents_death_ends_its_own_claims_and_no_other(start: Start, url: str) -> None:
    family = Family(start, url)
    assert family.parent("begin", "p") == family.child("begin", "c") == "Proceed"
    family.process.kill()
    witness = Claimant(oncekey.open(url))
    assert witness.begin("p") == "Proceed"
    assert witness.begin("c") == "Busy"
    assert family.child("settle", "c") == "settled"
    assert witness.begin("c") == "Replay"
    witness.close(0)


def test_a_childs_death_ends_its_own_claims_and_no_other(start: Start, url: str) -> None:
    family = Family(start, url)
    assert family.parent("begin", "p") == family.child("begin", "c") == "Proceed"
    family.kill_child()
    witness = Claimant(oncekey.open(url))
    assert witness.begin("c") == "Proceed"
    assert witness.begin("p") == "Busy"
    assert family.parent("settle", "p") == "settled"
    assert witness.begin("p") == "Replay"
    witness.close(0)


def fork_under_load(said: Any, url: str) -> None:
    """Forks while threads claim, so that a child finds every lock in any state."""
    both, stop, failed = Claimant(oncekey.open(url)), threading.Event(), []

    def claim(name: int) -> None:
        number = 0
        while not stop.is_set():
            key = f"t{name}-{number}"
            if both.begin(key) != "Proceed" or both.settle(key) != "settled":
                failed.append(key)
            number += 1

    threads = [threading.Thread(target=claim, args=(name,)) for name in range(THREADS)]
    for thread in threads:
        thread.start()
    codes = []
    for number in range(FORKS):
        child = os.fork()
        if not child:
            key = f"child-{number}"
            done = both.begin(key) == "Proceed" and both.settle(key) == "settled"
            os._exit(0 if done else 1)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    stop.set()
    for thread in threads:
        thread.join()
    said.send((codes, failed))


def check_forks_under_load(start: Start, url: str) -> None:
    codes, failed = start(fork_under_load, url).hear()
    assert codes == [0] * FORKS
    assert failed == []
    witness: Ledger = oncekey.open(url)
    replays = {Claimant(witness).begin(f"child-{number}") for number in range(FORKS)}
    assert replays == {"Replay"}
    witness.close(grace=0)


def test_a_process_may_fork_while_its_threads_claim(start: Start, url: str) -> None:
    check_forks_under_load(start, url)


@pytest.mark.postgres
def test_a_process_on_postgres_may_fork_while_its_threads_claim(
    start: Start, postgres_url: str
) -> None:
    check_forks_under_load(start, postgres_url)


def fork_after_close(said: Any, url: str) -> None:
    ledger = oncekey.open(url)
    ledger.close(grace=0)
    # Numbers of files are used again: the child must not close what was opened meanwhile.
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(8)]
    child = os.fork()
    if not child:
        os._exit(sum(1 for file in files if not _is_open(file)))
    said.send(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def _is_open(file: int) -> bool:
    try:
        os.fstat(file)
    except OSError:
        return False
    return True


def test_a_child_of_a_closed_ledger_closes_nothing_of_others(start: Start, url: str) -> None:
    assert start(fork_after_close, url).hear() == 0


def fork_twice(said: Any, url: str) -> None:
    ledger = oncekey.open(url)
    if os.fork():
        os._exit(0)
    # A daemon: neither it nor its parent used the ledger before the second fork.
    if os.fork():
        os._exit(0)
    daemon = Claimant(ledger)
    verbs = [daemon.begin("k"), daemon.settle("k"), daemon.begin("k")]
    said.send((verbs, ledger._sweeper._thread.is_alive()))


def test_a_daemon_forked_twice_works_and_sweeps(start: Start, url: str) -> None:
    assert start(fork_twice, url).hear() == (["Proceed", "settled", "Replay"], True)
