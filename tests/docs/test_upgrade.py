"""The page on upgrades: its commands, and what it says of tables that are newer than the code."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import oncekey
from oncekey import SchemaOutdated, SchemaTooNew
from tests.fixtures.guide import Guide
from tests.fixtures.pages import DOCS

PAGE = DOCS / "operations" / "upgrade.md"


def test_the_page_is_followed(tmp_path: Path) -> None:
    (tmp_path / "oncekey.toml").write_text('[store]\nurl = "sqlite:///oncekey.db"\n')
    Guide(PAGE, tmp_path).follow()


def test_who_opens_what(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/oncekey.db"
    with pytest.raises(SchemaOutdated):
        oncekey.open(url, migrate=False)
    running = oncekey.open(url)
    oncekey.open(url, migrate=False).close()
    with closing(sqlite3.connect(tmp_path / "oncekey.db")) as newer, newer:
        newer.execute("UPDATE oncekey_schema SET version = version + 1")

    for migrate in (True, False):
        with pytest.raises(SchemaTooNew):
            oncekey.open(url, migrate=migrate)
    assert running.once("order:1", lambda: "goes on") == "goes on"
    running.close()
