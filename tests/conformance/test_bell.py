"""The bell: what one process does is heard by the others on its store."""

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from oncekey.compose.ledger import store_of
from oncekey.core.clock import SystemClock
from oncekey.core.errors import LedgerClosed
from oncekey.core.ports import Store
from tests.fixtures.postgres_schema import new_schema
from tests.fixtures.postgres_server import PostgresServer
from tests.fixtures.processes import Process, Start
from tests.fixtures.stores import Place, sqlite_url, until


class Ear:
    """Counts how often it is told; it listens once the first call has come."""

    def __init__(self, store: Store) -> None:
        self._news = threading.Condition()
        self.count = 0
        self.stop = store.listen(self)

    def __call__(self) -> None:
        with self._news:
            self.count += 1
            self._news.notify_all()

    def wait_for(self, count: int) -> None:
        with self._news:
            self._news.wait_for(lambda: self.count >= count)


def ear_at(store: Store) -> Ear:
    ear = Ear(store)
    ear.wait_for(1)
    return ear


def opened(url: str) -> Store:
    store = store_of(url, SystemClock())
    store.open(lambda _: 0)
    return store


def answer_rings(said: Any, url: str) -> None:
    """A process that says what it hears, and rings when it is told to."""
    store = opened(url)
    store.listen(lambda: said.send("heard"))
    while said.recv():
        store.ring()
    store.close()


def bells_in(url: str) -> list[Path]:
    folder = Path(url.removeprefix("sqlite:///") + "-locks")
    return [*folder.glob("bell-*"), *folder.glob("new-*")]


def test_who_listens_is_told(place: Place) -> None:
    listener = place.open().store
    ringer = listener if place.url == "memory://" else place.open().store
    ear = ear_at(listener)

    ringer.ring()
    ear.wait_for(2)
    ringer.ring()
    ear.wait_for(3)


def test_who_has_stopped_is_told_nothing_any_more(place: Place) -> None:
    listener = place.open().store
    ringer = listener if place.url == "memory://" else place.open().store
    first, second = ear_at(listener), ear_at(listener)
    told, heard = first.count, second.count
    first.stop()

    ringer.ring()
    second.wait_for(heard + 1)

    assert first.count == told
    first.stop()


def test_a_listener_that_fails_keeps_nobody_from_hearing(place: Place) -> None:
    listener = place.open().store
    ringer = listener if place.url == "memory://" else place.open().store
    told = threading.Event()

    def fail() -> None:
        if told.is_set():
            raise RuntimeError
        told.set()

    listener.listen(fail)
    told.wait()
    ear = ear_at(listener)

    for count in (2, 3):
        ringer.ring()
        ear.wait_for(count)


def test_rings_go_both_ways_between_processes(shared: Place, start: Start) -> None:
    store = shared.open().store
    ear = ear_at(store)
    process = start(answer_rings, shared.url)
    assert process.hear() == "heard"

    store.ring()
    assert process.hear() == "heard"
    process.tell("ring")
    ear.wait_for(2)


def test_a_process_does_not_hear_itself(shared: Place) -> None:
    first, second = shared.open().store, shared.open().store
    ours, theirs = ear_at(first), ear_at(second)

    first.ring()
    theirs.wait_for(2)
    second.ring()
    ours.wait_for(2)

    assert (ours.count, theirs.count) == (2, 2)


def test_whoever_only_rings_does_not_have_to_listen(shared: Place) -> None:
    ringer, ear = shared.open().store, ear_at(shared.open().store)
    ringer.ring()
    ear.wait_for(2)


def test_who_stands_still_stops_nobody_and_hears_of_it_later(shared: Place, start: Start) -> None:
    store, process = shared.open().store, start(answer_rings, shared.url)
    assert process.hear() == "heard"
    ear = ear_at(shared.open().store)
    process.pause()

    for _ in range(2000):
        store.ring()
    ear.wait_for(2)
    process.resume()

    assert process.hear() == "heard"


def test_a_closed_store_neither_rings_nor_listens(shared: Place) -> None:
    store = shared.open().store
    ear_at(store)
    store.close()

    store.ring()
    with pytest.raises(LedgerClosed):
        store.listen(lambda: None)


def test_the_last_ring_before_the_end_is_heard(shared: Place) -> None:
    ear = ear_at(shared.open().store)
    for count in range(2, 8):
        ringer = shared.open().store
        ringer.ring()
        ringer.close()
        ear.wait_for(count)


# -- forks -----------------------------------------------------------------------------------------


def ring_around_a_fork(said: Any, url: str) -> None:
    store = opened(url)
    ear = ear_at(store)
    store.ring()
    child = os.fork()
    if not child:
        heard = Ear(store)
        heard.wait_for(1)
        said.send("child listens")
        heard.wait_for(2)
        said.send("child heard")
        store.ring()
        os._exit(0)
    ear.wait_for(2)
    said.send("parent heard")
    os.waitpid(child, 0)
    said.recv()
    told = ear.count
    said.send("parent listens")
    ear.wait_for(told + 1)
    said.send("parent heard")
    store.close()


def test_parent_and_child_are_two_processes(shared: Place, start: Start) -> None:
    store = shared.open().store
    process = start(ring_around_a_fork, shared.url)
    assert process.hear() == "child listens"

    # Not by its parent's socket: the parent hears it as well.
    store.ring()
    assert {process.hear(), process.hear()} == {"child heard", "parent heard"}

    # The child is gone; the parent hears as before.
    process.tell("go on")
    assert process.hear() == "parent listens"
    store.ring()
    assert process.hear() == "parent heard"


def listen_in_parent_only(said: Any, url: str) -> None:
    store = opened(url)
    ear = ear_at(store)
    line = os.pipe()
    child = os.fork()
    if not child:
        os.read(line[0], 1)
        os._exit(ear.count)
    told = ear.count
    said.send("listens")
    ear.wait_for(told + 1)
    os.write(line[1], b"1")
    said.send(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def test_a_forked_child_listens_to_nothing(shared: Place, start: Start) -> None:
    store = shared.open().store
    process = start(listen_in_parent_only, shared.url)
    assert process.hear() == "listens"

    store.ring()

    assert process.hear() == 1


def fork_after_close(said: Any, url: str, folder: str) -> None:
    store = opened(url)
    ear_at(store)
    store.ring()
    store.close()
    # Numbers of files are used again: the child must not touch what was opened meanwhile.
    files = [os.open(f"{folder}/{number}", os.O_CREAT | os.O_RDWR) for number in range(16)]
    expected = [os.fstat(file).st_ino for file in files]
    child = os.fork()
    if not child:
        same = [os.fstat(file).st_ino for file in files] == expected
        os._exit(0 if same else 1)
    said.send(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def test_a_child_of_a_closed_bell_touches_nothing_of_others(
    shared: Place, start: Start, tmp_path: Path
) -> None:
    shared.open()
    assert start(fork_after_close, shared.url, str(tmp_path)).hear() == 0


# -- sockets of SQLite -----------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> str:
    return sqlite_url(tmp_path)


def listening(start: Start, url: str) -> Process:
    process = start(answer_rings, url)
    assert process.hear() == "heard"
    return process


def test_the_socket_of_a_killed_process_is_removed_by_the_next_ring(
    file: str, start: Start
) -> None:
    process, store = listening(start, file), opened(file)
    assert len(bells_in(file)) == 1
    process.kill()

    store.ring()

    assert bells_in(file) == []
    store.close()


def test_a_process_that_leaves_takes_its_socket_along(file: str) -> None:
    store = opened(file)
    ear_at(store)
    assert len(bells_in(file)) == 1

    store.close()

    assert bells_in(file) == []


def test_a_path_may_be_longer_than_the_name_of_a_socket(tmp_path: Path, start: Start) -> None:
    folder = tmp_path / ("long" * 30) / ("longer" * 20)
    folder.mkdir(parents=True)
    url = sqlite_url(folder)
    process, store = listening(start, url), opened(url)
    ear = ear_at(store)

    store.ring()
    assert process.hear() == "heard"
    process.tell("ring")
    ear.wait_for(2)
    store.close()


def test_a_socket_that_somebody_removed_stops_nobody(file: str) -> None:
    store = opened(file)
    ear = ear_at(store)
    for path in bells_in(file):
        path.unlink()

    store.ring()
    store.close()

    assert ear.count == 1


# -- the server of PostgreSQL ----------------------------------------------------------------------


@pytest.mark.postgres
def test_a_server_that_comes_back_is_listened_to_again(postgres: PostgresServer) -> None:
    url = new_schema(postgres.url())
    first, second = opened(url), opened(url)
    ears = [ear_at(first), ear_at(second)]

    postgres.restart()
    for ear in ears:
        # Something may have been missed.
        ear.wait_for(2)
    told = ears[1].count
    first.ring()

    ears[1].wait_for(told + 1)
    for store in (first, second):
        store.close()


@pytest.mark.postgres
def test_a_ring_while_the_server_is_away_is_heard_when_it_is_back(
    postgres: PostgresServer,
) -> None:
    url = new_schema(postgres.url())
    store = opened(url)
    ear_at(store)
    postgres.stop()
    store.ring()
    postgres.start()
    other = opened(url)
    ear = ear_at(other)
    until(lambda: not store._bell._rung)  # type: ignore[attr-defined]

    store.ring()
    ear.wait_for(2)
    for each in (store, other):
        each.close()


@pytest.mark.postgres
def test_ledgers_in_one_database_do_not_hear_each_other(postgres: PostgresServer) -> None:
    ours = [opened(url) for url in [new_schema(postgres.url())] * 2]
    theirs = [opened(url) for url in [new_schema(postgres.url())] * 2]
    near, far = ear_at(ours[1]), ear_at(theirs[1])

    ours[0].ring()
    near.wait_for(2)
    theirs[0].ring()
    far.wait_for(2)

    assert far.count == 2
    for store in (*ours, *theirs):
        store.close()
