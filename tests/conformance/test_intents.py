"""What every store of intents does. Memory is the model."""

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from oncekey import SchemaTooNew, StoreUnavailable
from oncekey.client import Intents, MemoryIntents, SqliteIntents
from oncekey.client.answer import Kept
from oncekey.client.intents import Frozen

ORDER = Frozen("POST", "http://shop/orders", (("x-a", "1"), ("x-a", "2")), b"\x00tea", b"f" * 16)
OTHER = Frozen("PUT", "http://shop/orders/1", (), b"", b"g" * 16)
ANSWER = Kept(201, (("content-type", "text/plain"), ("x-b", "3")), b"\xffdone")


@pytest.fixture(params=["memory", "sqlite"])
def intents(request: pytest.FixtureRequest, tmp_path: Path) -> Intents:
    if request.param == "memory":
        return MemoryIntents()
    return SqliteIntents(tmp_path / "intents.db")


def test_one_name_one_key(intents: Intents) -> None:
    first = intents.capture("shop", "tea", "k1", 10, 0)
    assert (first.key, first.created_at, first.request, first.sent_at) == ("k1", 10, None, None)
    assert intents.capture("shop", "tea", "k2", 20, 0) == first
    assert intents.capture("shop", "cake", "k3", 20, 0).key == "k3"
    assert intents.capture("bank", "tea", "k4", 20, 0).key == "k4"


def test_the_first_request_is_frozen(intents: Intents) -> None:
    record = intents.capture("shop", "tea", "k1", 10, 0)
    frozen = intents.freeze(record, ORDER, 11)
    assert (frozen.request, frozen.sent_at) == (ORDER, 11)
    assert intents.freeze(record, OTHER, 12) == frozen
    assert intents.capture("shop", "tea", "k2", 13, 0) == frozen


def test_what_is_pending(intents: Intents) -> None:
    one = intents.capture("shop", "one", "k1", 10, 0)
    two = intents.capture("shop", "two", "k2", 10, 0)
    intents.capture("bank", "three", "k3", 10, 0)
    assert [each.name for each in intents.pending("shop")] == ["one", "two"]
    intents.settle(intents.freeze(one, ORDER, 11), ANSWER, 12)
    assert [each.name for each in intents.pending("shop")] == ["two"]
    intents.forget(two)
    assert intents.pending("shop") == []


def test_an_answer_is_remembered_for_a_while(intents: Intents) -> None:
    record = intents.freeze(intents.capture("shop", "tea", "k1", 10, 0), ORDER, 11)
    intents.settle(record, ANSWER, 100)
    known = intents.capture("shop", "tea", "k2", 150, 100)
    assert (known.key, known.answer, known.done_at) == ("k1", ANSWER, 100)
    assert known.request is not None
    # What was asked is not kept longer than it is needed; what it is known by is.
    assert (known.request.body, known.request.fingerprint) == (b"", ORDER.fingerprint)
    assert intents.capture("shop", "tea", "k3", 300, 101).key == "k3"


def test_an_answer_that_is_not_kept_can_be_asked_for_again(intents: Intents) -> None:
    record = intents.freeze(intents.capture("shop", "tea", "k1", 10, 0), ORDER, 11)
    intents.settle(record, None, 100)
    known = intents.capture("shop", "tea", "k2", 150, 0)
    assert (known.request, known.answer, known.done_at) == (ORDER, None, 100)


def test_the_first_answer_counts(intents: Intents) -> None:
    record = intents.freeze(intents.capture("shop", "tea", "k1", 10, 0), ORDER, 11)
    intents.settle(record, ANSWER, 100)
    intents.settle(record, ANSWER._replace(status=422), 200)
    found = intents.find(record)
    assert found is not None
    assert (found.answer, found.done_at) == (ANSWER, 100)


def test_what_is_kept_can_be_found(intents: Intents) -> None:
    record = intents.capture("shop", "tea", "k1", 10, 0)
    frozen = intents.freeze(record, ORDER, 11)
    assert intents.find(record) == frozen
    intents.forget(record)
    assert intents.find(record) is None
    intents.capture("shop", "tea", "k2", 20, 0)
    assert intents.find(record) is None


def test_one_that_comes_back_is_as_old_as_it_was(intents: Intents) -> None:
    record = intents.freeze(intents.capture("shop", "tea", "k1", 10, 0), ORDER, 11)
    intents.forget(record)
    assert intents.freeze(record, ORDER, 5000).sent_at == 11


def test_the_key_is_a_fence(intents: Intents) -> None:
    old = intents.capture("shop", "tea", "k1", 10, 0)
    intents.forget(old)
    new = intents.capture("shop", "tea", "k2", 20, 0)
    intents.settle(old, ANSWER, 30)
    intents.forget(old)
    assert intents.pending("shop") == [new]
    # Whoever still holds the old one learns what is kept, and sends nothing else.
    assert intents.freeze(old, ORDER, 40).key == "k2"


def test_one_that_was_given_up_elsewhere_is_kept_again(intents: Intents) -> None:
    record = intents.capture("shop", "tea", "k1", 10, 0)
    intents.forget(record)
    assert intents.freeze(record, ORDER, 20).key == "k1"
    assert [each.key for each in intents.pending("shop")] == ["k1"]


def test_many_at_once_have_one_key(intents: Intents) -> None:
    found: list[str] = []
    gate = threading.Barrier(8)

    def capture(number: int) -> None:
        gate.wait()
        found.append(intents.capture("shop", "tea", f"k{number}", 10, 0).key)

    threads = [threading.Thread(target=capture, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1


# -- the file ------------------------------------------------------------------------------


def test_a_file_outlives_its_process(tmp_path: Path) -> None:
    first = SqliteIntents(tmp_path / "intents.db")
    kept = first.freeze(first.capture("shop", "tea", "k1", 10, 0), ORDER, 11)
    # Without a close, as after a kill.
    assert SqliteIntents(tmp_path / "intents.db").pending("shop") == [kept]


def test_nobody_else_reads_the_file(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        intents = SqliteIntents(tmp_path / "intents.db")
        intents.capture("shop", "tea", "k1", 10, 0)
        modes = {stat.S_IMODE(each.stat().st_mode) for each in tmp_path.glob("intents.db*")}
    finally:
        os.umask(before)
    assert modes == {0o600}


def test_a_second_one_on_the_file_keeps_the_locks_of_the_first(tmp_path: Path) -> None:
    """To the kernel all locks of a process on a file are one: whoever opens the file and closes it
    lets go of them, and the next process that leaves takes the log for nobody's."""
    path = tmp_path / "intents.db"
    first, second = SqliteIntents(path), SqliteIntents(path)
    first.capture("shop", "before", "k1", 10, 0)
    second.capture("shop", "beside", "k2", 10, 0)
    visit = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.close()"
    )
    command = [sys.executable, "-c", visit, str(path), "SELECT count(*) FROM intents"]
    subprocess.run(command, check=True, timeout=60)
    first.capture("shop", "after", "k3", 10, 0)
    kept = sqlite3.connect(path).execute("SELECT name FROM intents").fetchall()
    assert {name for (name,) in kept} == {"before", "beside", "after"}


def test_a_forked_child_has_a_connection_of_its_own(tmp_path: Path) -> None:
    intents = SqliteIntents(tmp_path / "intents.db")
    intents.capture("shop", "parent", "k1", 10, 0)
    child = os.fork()
    if child == 0:
        intents.capture("shop", "child", "k2", 10, 0)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    intents.capture("shop", "again", "k3", 10, 0)
    assert [each.name for each in intents.pending("shop")] == ["parent", "child", "again"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_bytes(b"no database" * 100),
        lambda path: path.mkdir(),
    ],
    ids=["damaged", "a-folder"],
)
def test_a_file_that_cannot_be_used(tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    spoil(tmp_path / "intents.db")
    with pytest.raises(StoreUnavailable, match=r"intents\.db"):
        SqliteIntents(tmp_path / "intents.db").capture("shop", "tea", "k1", 10, 0)


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "intents.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    intents = SqliteIntents(tmp_path / "intents.db")
    for _ in range(2):
        with pytest.raises(SchemaTooNew):
            intents.capture("shop", "tea", "k1", 10, 0)


def test_a_large_file_is_tidied_up_bit_by_bit(tmp_path: Path) -> None:
    intents = SqliteIntents(tmp_path / "intents.db")
    for number in range(150):
        record = intents.capture("shop", f"n{number}", "k", 10, 0)
        intents.settle(record, ANSWER, 20)
    intents.capture("shop", "new", "k", 30, 30)
    with sqlite3.connect(tmp_path / "intents.db") as connection:
        assert connection.execute("SELECT count(*) FROM intents").fetchone() == (51,)
    connection.close()
