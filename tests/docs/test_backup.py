"""The page on backups: its commands are typed on SQLite and on a real PostgreSQL."""

import re
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.fixtures.guide import Guide
from tests.fixtures.pages import DOCS
from tests.fixtures.postgres_server import PostgresServer
from tests.fixtures.postgres_tools import with_tools

PAGE = DOCS / "operations" / "backup.md"


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[PostgresServer]:
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE shop")
        yield postgres
        connection.execute("DROP DATABASE shop WITH (FORCE)")


def test_a_copy_is_as_private_as_the_ledger(tmp_path: Path) -> None:
    """Whatever the umask; the program of the page is the first of its blocks."""
    program = re.findall(r"(?ms)^```python\n(.*?)^```", PAGE.read_text())[0]
    (tmp_path / "backup.py").write_text(program)
    sqlite3.connect(tmp_path / "oncekey.db").close()
    words = [sys.executable, "backup.py", "oncekey.db", "copy.db"]
    subprocess.run(words, cwd=tmp_path, check=True, timeout=60, umask=0)
    assert stat.S_IMODE((tmp_path / "copy.db").stat().st_mode) == 0o600


@pytest.mark.postgres
def test_the_page_is_followed(database: PostgresServer, tmp_path: Path) -> None:
    (tmp_path / "oncekey.toml").write_text('[store]\nurl = "sqlite:///oncekey.db"\n')
    guide = Guide(PAGE, tmp_path, ports={5432: database.port}, PATH=with_tools())
    guide.follow()
    shop = f"postgresql://postgres@127.0.0.1:{database.port}/shop"
    assert "nightly      10d" in guide.run(f"oncekey retention list --url {shop}").output
