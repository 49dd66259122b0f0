"""The tables: made once, by whoever comes first; refused when they are of another version."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oncekey.core.errors import SchemaOutdated, SchemaTooNew
from oncekey.core.ports import Held
from oncekey.stores.queries import migrations, newest
from oncekey.stores.sql import SqlStore
from tests.fixtures.stores import Place
from tests.fixtures.work import Worker

ROOT = Path(__file__).parents[2]
START = """
import sys, oncekey
sys.stdin.readline()
ledger = oncekey.open(sys.argv[1])
print(ledger.once("k", lambda: sys.argv[2], wait=30.0))
ledger.close()
"""


def transact(place: Place) -> Callable[[Callable[..., Any]], Any]:
    store = place.open().store
    assert isinstance(store, SqlStore)
    return lambda work: store.transact(work, write=True)


def test_tables_are_made_when_they_are_missing(database: Place) -> None:
    caller = database.open()
    assert caller.ask(caller.insert("k")) == Held(1)


def test_a_second_start_keeps_what_is_there(database: Place) -> None:
    caller = database.open()
    insert = caller.insert("k")
    caller.ask(insert)
    again = database.open()
    assert again.ask(again.insert("k")).record.id == insert.id


def test_without_migrations_missing_tables_are_refused(database: Place) -> None:
    with pytest.raises(SchemaOutdated, match="oncekey migrate"):
        database.open(migrate=False)


def test_without_migrations_good_tables_are_taken(database: Place) -> None:
    database.open()
    caller = database.open(migrate=False)
    assert caller.ask(caller.insert("k")) == Held(1)


@pytest.mark.parametrize("migrate", [True, False])
def test_newer_tables_are_refused(database: Place, *, migrate: bool) -> None:
    version = newest(database.dialect) + 1
    transact(database)(lambda run: run("set_version", {"version": version}))
    with pytest.raises(SchemaTooNew, match="upgrade oncekey"):
        database.open(migrate=migrate)


def test_processes_that_start_at_once_make_one_set_of_tables(database: Place) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", START, database.url, str(number)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()

    said = [process.communicate(timeout=60) for process in processes]

    assert [errors for _, errors in said] == [""] * 4
    assert len({answer for answer, _ in said}) == 1


def test_a_migration_that_fails_leaves_nothing_behind(database: Place) -> None:
    database.execute("CREATE TABLE oncekey_turns (somebody_elses integer)")
    with pytest.raises(Exception, match="oncekey_turns"):
        database.open()
    database.execute("DROP TABLE oncekey_turns")
    caller = database.open()
    assert caller.ask(caller.insert("k")) == Held(1)


def test_tables_of_the_first_version_are_brought_up_to_date(database: Place) -> None:
    database.run_script(dict(migrations(database.dialect))[1])
    database.execute("CREATE TABLE oncekey_schema (version integer NOT NULL)")
    database.execute("INSERT INTO oncekey_schema VALUES (1)")
    database.execute("INSERT INTO oncekey_retention VALUES ('financial', 7)")

    worker = Worker(database.open())

    assert worker.caller.store.retention() == {"financial": 7}
    assert worker.start(key="k").key == "k"


def test_old_tables_are_refused_without_migrations(database: Place) -> None:
    database.execute("CREATE TABLE oncekey_schema (version integer NOT NULL)")
    database.execute("INSERT INTO oncekey_schema VALUES (0)")
    with pytest.raises(SchemaOutdated, match="version 0"):
        database.open(migrate=False)
