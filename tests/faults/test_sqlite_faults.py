"""SQLite that is full, locked, read-only or no database: nothing runs, nothing is lost."""

import fcntl
import os
import resource
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import oncekey
from oncekey import ConfigurationError, StoreUnavailable
from tests.fixtures.processes import Start
from tests.fixtures.shop import give_up_privileges
from tests.fixtures.stores import until
from tests.fixtures.street import Order, Server, Street

# Enough for a line of the shop's own file, too little for a page of the database.
FULL = 4096


@contextmanager
def full_disk(street: Street, server: Server) -> Iterator[None]:
    """The process can make no file longer: each write past the limit fails as on a full disk."""
    _, most = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (FULL, most))
    try:
        yield
    finally:
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (most, most))


@contextmanager
def locked_file(street: Street, server: Server) -> Iterator[None]:
    """Another program writes to the file, and takes its time."""
    with closing(sqlite3.connect(street.folder / "oncekey.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            other.execute("ROLLBACK")


@contextmanager
def read_only_file(street: Street, server: Server) -> Iterator[None]:
    """The file may not be written to by those who open it from now on."""
    with full_disk(street, server):
        # What is open stays open; after a failure the file is opened again.
        assert server.ask("/rerun", "reopen").problem == "ledger-unavailable"
        permit(street.folder, stat.S_IRUSR)
    try:
        yield
    finally:
        permit(street.folder, stat.S_IRUSR | stat.S_IWUSR)


def permit(folder: Path, mode: int) -> None:
    """For the file and those that SQLite keeps beside it, which get its mode when they are made."""
    for path in folder.glob("oncekey.db*"):
        if path.is_file():
            path.chmod(mode)


FAULTS = [full_disk, locked_file, read_only_file]
faulty = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)


@faulty
def test_nothing_runs_while_the_file_cannot_be_written(street: Street, fault: Any) -> None:
    server = street.open(impatient=True)
    before = server.ask("/rerun", "before")
    with fault(street, server):
        refused = server.ask("/rerun", "k")
        assert (refused.status, refused.problem) == (503, "ledger-unavailable")
        assert refused.header("retry-after")
        assert street.effects("k") == []
    assert server.ask("/rerun", "k").status == 201
    assert len(street.effects("k")) == 1
    assert server.ask("/rerun", "before").body == before.body


@faulty
def test_an_outcome_waits_until_it_can_be_written(street: Street, fault: Any) -> None:
    server = street.open()
    order = server.order("/held", "k")
    with fault(street, server):
        server.go()
        until(lambda: street.effects("k"))
    answer = order.answer()
    assert (answer.status, answer.replayed) == (201, False)
    assert server.ask("/held", "k").body == answer.body
    assert street.effects("k") == [answer.json["execution"]]


@faulty
def test_an_outcome_is_kept_though_its_caller_was_told_to_come_back(
    street: Street, fault: Any
) -> None:
    server = street.open(impatient=True)
    order = server.order("/held", "k")
    with fault(street, server):
        server.go()
        told = order.answer()
        assert (told.status, told.problem) == (503, "ledger-unavailable")
        assert len(street.effects("k")) == 1
    # The retry waits for the outcome that is still on its way, and does not run it again.
    answer = server.ask("/held", "k")
    assert (answer.status, answer.replayed) == (201, True)
    assert street.effects("k") == [answer.json["execution"]]


def test_what_was_remembered_is_answered_while_nothing_can_be_written(street: Street) -> None:
    server = street.open(impatient=True)
    first = server.ask("/rerun", "k")
    assert server.ask("/rerun", "k").replayed
    with full_disk(street, server):
        assert server.ask("/rerun", "k").body == first.body


def test_a_process_that_stops_in_the_middle_of_a_commit_does_not_stop_all_answers(
    street: Street,
) -> None:
    """The gate is in the hands of somebody who stands still; who holds it makes no difference."""
    server = street.open(impatient=True, in_flight="conflict")
    order = server.order("/held", "k")
    with (street.folder / "oncekey.db-locks" / "gate").open("rb") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        server.go()
        waiting = [Order(server, "/rerun", "first")]
        until(lambda: _is_refused(server, waiting))
        assert server.ask("/rerun", "other").problem == "ledger-unavailable"
    # The outcome was kept all the time, and so was the claim that had gone ahead.
    assert order.answer().status == 201
    assert {each.answer().status for each in waiting} <= {201, 503}
    assert server.ask("/rerun", "other").status == 201
    assert [len(street.effects(key)) for key in ("k", "other")] == [1, 1]


def _is_refused(server: Server, waiting: list[Order]) -> bool:
    """Each call waits for the writer, until one comes so late that all of them are told."""
    waiting.append(Order(server, "/rerun", f"later-{len(waiting)}"))
    return any(each.is_over for each in waiting)


# -- at the start ------------------------------------------------------------------------


def open_unprivileged(said: Any, url: str) -> None:
    give_up_privileges()
    try:
        oncekey.open(url).close()
    except Exception as error:  # noqa: BLE001 - the test looks at what it is
        said.send((type(error), str(error)))
    else:
        said.send((None, ""))


def error_at_start(start: Start, path: Path) -> tuple[Any, str]:
    kind, message = start(open_unprivileged, f"sqlite:///{path}").hear()
    return kind, message


def test_a_file_that_is_no_database_is_named(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "oncekey.db"
    path.write_bytes(b"something else entirely\n" * 100)
    kind, message = error_at_start(start, path)
    assert kind is StoreUnavailable
    assert str(path) in message
    assert "not a database" in message


def test_a_file_that_may_not_be_written_is_named(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "oncekey.db"
    oncekey.open(f"sqlite:///{path}").close()
    permit(tmp_path, stat.S_IRUSR)
    kind, message = error_at_start(start, path)
    assert kind is StoreUnavailable
    assert str(path) in message
    permit(tmp_path, stat.S_IRUSR | stat.S_IWUSR)
    assert error_at_start(start, path) == (None, "")


def test_a_folder_that_may_not_be_written_is_named(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir()
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    kind, message = error_at_start(start, folder / "oncekey.db")
    assert kind is StoreUnavailable
    assert str(folder) in message


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="missing"):
        oncekey.open(f"sqlite:///{tmp_path}/missing/oncekey.db")


def test_a_folder_in_place_of_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "oncekey.db").mkdir()
    with pytest.raises(StoreUnavailable, match=r"oncekey\.db"):
        oncekey.open(f"sqlite:///{tmp_path}/oncekey.db")


def open_on_full_disk(said: Any, url: str) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (FULL, resource.RLIM_INFINITY))
    try:
        oncekey.open(url)
    except StoreUnavailable as error:
        said.send(str(error))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    oncekey.open(url).close()
    said.send("open")


def test_a_disk_that_is_full_at_the_start_is_named(start: Start, tmp_path: Path) -> None:
    process = start(open_on_full_disk, f"sqlite:///{tmp_path}/oncekey.db")
    assert "oncekey.db" in process.hear()
    assert process.hear() == "open"
    assert os.path.getsize(tmp_path / "oncekey.db") > FULL  # noqa: PTH202
