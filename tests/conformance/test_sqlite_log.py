"""SQLite's log is emptied into the database beside the writer."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from oncekey.stores.sqlite.checkpoint import Checkpointer
from tests.fixtures.stores import DAY, Caller, Place, until

GROUP = 500


@pytest.fixture
def caller(tmp_path: Path) -> Iterator[Caller]:
    place = Place(f"sqlite:///{tmp_path}/oncekey.db")
    yield place.open()
    place.close()


def write(caller: Caller, prefix: str, groups: int) -> None:
    for group in range(groups):
        caller.ask_all([caller.insert(f"{prefix}-{group}-{n}", kept=DAY) for n in range(GROUP)])


def stored_without_log(folder: Path) -> int:
    """How many claims the database holds by itself."""
    shutil.copy(folder / "oncekey.db", folder / "alone.db")
    with closing(sqlite3.connect(folder / "alone.db")) as connection:
        try:
            return int(connection.execute("SELECT count(*) FROM oncekey_claims").fetchone()[0])
        except sqlite3.Error:
            # Copied in the middle of a checkpoint.
            return 0


def test_claims_reach_the_database_while_the_ledger_is_open(tmp_path: Path, caller: Caller) -> None:
    write(caller, "k", 18)
    until(lambda: stored_without_log(tmp_path) >= 8000)


def test_a_checkpoint_that_fails_is_left_to_the_next_one() -> None:
    tried: list[int] = []

    def fail() -> None:
        tried.append(1)
        raise sqlite3.OperationalError("disk I/O error")

    checkpointer = Checkpointer(fail)
    checkpointer.wrote(10_000)
    until(lambda: len(tried) == 1)
    checkpointer.wrote(10_000)
    until(lambda: len(tried) == 2)
    checkpointer.close()
