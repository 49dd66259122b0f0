"""`oncekey sweep`, `migrate` and `check`: what keeps a ledger in order."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.fixtures.command import Run
from tests.fixtures.shelf import Shelf


def set_version(path: Path, version: int) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO oncekey_schema (version) VALUES (?)", (version,))


def test_sweep_deletes_what_is_expired(oncekey: Run, shelf: Shelf) -> None:
    shelf.ledger.set_retention("interactive", 0.001)
    for key in ("a", "b"):
        shelf.settle(key)
    shelf.ledger.set_retention("interactive", 86400)
    shelf.settle("kept")
    assert oncekey("sweep").stdout == "swept 2 expired records\n"
    assert json.loads(oncekey("sweep", "--json").stdout) == {"swept": 0}
    assert shelf.ledger.peek(shelf.settle("other").ref) is not None


def test_migrate_makes_the_tables_once(oncekey: Run, tmp_path: Path) -> None:
    first, second = oncekey("migrate"), oncekey("migrate")
    assert (first.returncode, second.returncode) == (0, 0)
    assert first.stdout == f"sqlite:///{tmp_path}/oncekey.db: ran migration 1, 2, 3, 4\n"
    assert second.stdout == (
        f"sqlite:///{tmp_path}/oncekey.db: nothing to do, the tables are up to date\n"
    )
    assert oncekey("keys", "list").stdout == "no keys\n"


@pytest.mark.parametrize("words", [["migrate"], ["check"], ["keys", "list"]])
def test_tables_of_a_newer_version_are_refused(
    oncekey: Run, shelf: Shelf, words: list[str]
) -> None:
    shelf.close()
    set_version(shelf.path, 999)
    done = oncekey(*words)
    assert done.returncode == 1
    assert done.stderr == (
        "error: the tables are at version 999, this code knows 4; upgrade oncekey in this process\n"
    )


def test_looking_does_not_make_a_ledger(oncekey: Run, tmp_path: Path) -> None:
    done = oncekey("keys", "list")
    assert done.returncode == 1
    assert done.stderr == (
        f"error: there is no ledger at {tmp_path}/oncekey.db; "
        "name another with --config or --url, or make one with `oncekey migrate`\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_old_tables_are_not_changed_by_looking(oncekey: Run, tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "oncekey.db").close()
    done = oncekey("keys", "list")
    assert done.returncode == 1
    assert done.stderr.endswith("run `oncekey migrate`\n")


def test_a_memory_ledger_cannot_be_looked_at(oncekey: Run) -> None:
    done = oncekey("keys", "list", "--url", "memory://")
    assert done.stderr == "error: memory:// lives inside one process; name a store with --url\n"


def test_check_says_what_is_right(oncekey: Run, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("raise RuntimeError('not run by a check')")
    (tmp_path / "oncekey.toml").write_text(
        "[app]\ntarget = 'shop:app'\n[[routes]]\npath = '/a'\nrequired = true\n"
    )
    url = f"sqlite:///{tmp_path}/oncekey.db"
    assert oncekey("check").stdout.splitlines() == [
        "configuration: ok, 1 route",
        "app: shop:app, found",
        f"store: {url}, no tables yet: `oncekey serve` or `oncekey migrate` makes them",
    ]
    assert not (tmp_path / "oncekey.db").exists()
    oncekey("migrate")
    assert oncekey("check").stdout.splitlines()[-1] == (
        f"store: {url}, reachable, tables up to date"
    )


def test_check_tells_every_mistake(oncekey: Run, tmp_path: Path) -> None:
    (tmp_path / "oncekey.toml").write_text("[store]\nulr = 'x'\n[server]\nport = 'x'\n")
    done = oncekey("check")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "error: oncekey.toml:2: there is no setting store.ulr; did you mean 'url'?",
        "error: oncekey.toml:4: server.port must be a whole number, not the text 'x'",
    ]


def test_check_names_an_app_that_is_not_there(oncekey: Run, tmp_path: Path) -> None:
    (tmp_path / "oncekey.toml").write_text("[app]\ntarget = 'nowhere.shop:app'\n")
    done = oncekey("check")
    assert done.returncode == 1
    assert done.stderr.startswith("error: nowhere.shop:app: there is no module nowhere.shop in ")


def test_check_offline_does_not_try_the_store(oncekey: Run) -> None:
    done = oncekey("check", "--offline", "--url", "postgresql://me:secret@127.0.0.1:1/db")
    assert done.returncode == 0
    assert "store: postgresql://me:***@127.0.0.1:1/db, not tried" in done.stdout


@pytest.mark.parametrize("words", [["check"], ["migrate"], ["keys", "list"], ["sweep"]])
def test_a_store_that_cannot_be_reached_is_one_line_without_secrets(
    oncekey: Run, words: list[str]
) -> None:
    url = "postgresql://me:s3cret@127.0.0.1:1/db?connect_timeout=2"
    done = oncekey(*words, "--url", url)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert "s3cret" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "url, told",
    [
        ("mysql://me:s3cret@db/app", "--url: store.url is 'mysql://…@db/app', not of the form "),
        ("restat://db:8080", "store.url is 'restat://db:8080', not of the form sqlite:///file.db"),
        ("restat://db:8080", "memory://; did you mean 'restate'?"),
        ("sqlite://keys.db", "write sqlite:///file.db (three slashes)"),
        ("sqlite:////nowhere/keys.db", "the folder /nowhere does not exist"),
    ],
)
def test_a_url_that_names_no_store_says_which_would(oncekey: Run, url: str, told: str) -> None:
    done = oncekey("keys", "list", "--url", url)
    assert (done.returncode, done.stdout) == (1, "")
    assert told in done.stderr
    assert "s3cret" not in done.stderr


def test_a_file_that_is_no_database_is_one_line(oncekey: Run, tmp_path: Path) -> None:
    (tmp_path / "oncekey.db").write_text("this is not a database, but long enough to look like it")
    for words in (["check"], ["migrate"], ["keys", "list"]):
        done = oncekey(*words)
        assert done.returncode == 1
        assert done.stderr.startswith("error: SQLite")
        assert done.stderr.count("\n") == 1


def test_a_folder_that_cannot_be_used_is_one_line(oncekey: Run, tmp_path: Path) -> None:
    oncekey("migrate")
    (tmp_path / "oncekey.db-locks").touch()
    done = oncekey("keys", "list")
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: SQLite file {tmp_path}/oncekey.db: ")
    assert done.stderr.count("\n") == 1


def test_check_names_a_recover_function_that_is_not_there(oncekey: Run, tmp_path: Path) -> None:
    (tmp_path / "oncekey.toml").write_text(
        "[[routes]]\npath = '/a'\nrequired = true\ntakeover = 'recover'\nrecover = 'nowhere:find'\n"
    )
    done = oncekey("check")
    assert done.returncode == 1
    assert done.stderr.startswith("error: nowhere:find: there is no module nowhere in ")


@pytest.mark.postgres
def test_upkeep_on_postgresql(oncekey: Run, postgres_url: str) -> None:
    options = ("--url", postgres_url)
    assert "no tables yet" in oncekey("check", *options).stdout
    assert "ran migration 1" in oncekey("migrate", *options).stdout
    assert "nothing to do" in oncekey("migrate", *options).stdout
    assert "reachable, tables up to date" in oncekey("check", *options).stdout
    assert oncekey("retention", "set", "interactive", "2h", *options).returncode == 0
    assert "2h" in oncekey("retention", "list", *options).stdout
    assert oncekey("keys", "list", *options).stdout == "no keys\n"
    assert oncekey("sweep", *options).stdout == "swept 0 expired records\n"
