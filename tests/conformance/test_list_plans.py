"""No list reads or sorts a whole table: an index leads to what is asked for, in its order."""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from oncekey.stores.queries import load
from tests.fixtures.postgres_schema import new_schema
from tests.fixtures.postgres_server import PostgresServer
from tests.fixtures.stores import Place, sqlite_url

# As many rows as there are keys, workflows, events and what came in: of all others there are few.
BIG = {
    "oncekey_claims", "oncekey_outcomes", "oncekey_executions", "oncekey_journal",
    "oncekey_promises", "oncekey_events", "oncekey_deliveries", "oncekey_audit",
}  # fmt: skip
ALIASES = {"c": "oncekey_claims", "o": "oncekey_outcomes", "e": "oncekey_executions",
           "p": "oncekey_promises"}  # fmt: skip
# Those that sort a few: what runs or is ready, and the promises of one execution.
SORTED = {"list_live", "list_promises_within"}
# Those that PostgreSQL takes from two indexes: it sorts a window.
MERGED = {"list_held_keys", "list_held_keys_edge"}
# Those through an index that holds nothing but what is asked for.
WHOLE = {"list_live": "oncekey_executions_live"}
# Of what operators make by hand there are few.
SMALL = {"list_api_keys", "list_schedules", "list_webhooks"}
LISTS = sorted(name for name in load("sqlite") if name.startswith("list_") and name not in SMALL)


def test_the_lists_are_the_same_everywhere() -> None:
    on_postgres = {name for name in load("postgres") if name.startswith("list_")}
    assert on_postgres == {*LISTS, *SMALL}
    assert len(LISTS) > 25


# -- SQLite ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    folder: Path = tmp_path_factory.mktemp("plans")
    place = Place(sqlite_url(folder))
    place.open()
    with closing(sqlite3.connect(folder / "ledger.db")) as connection:
        yield connection
    place.close()


def sqlite_troubles(file: sqlite3.Connection, query: str) -> list[str]:
    """The steps of a plan that read or sort a whole table."""
    values = dict.fromkeys(re.findall(r":(\w+)", query))
    steps = [row[3] for row in file.execute(f"EXPLAIN QUERY PLAN {query}", values)]
    assert steps
    return [step for step in steps if "ORDER BY" in step or _scans(step)]


def _scans(step: str) -> bool:
    scanned = re.match(r"SCAN (\w+)", step)
    return scanned is not None and ALIASES.get(scanned[1], scanned[1]) in BIG


@pytest.mark.parametrize("name", LISTS)
def test_a_list_on_sqlite_reads_no_whole_table(file: sqlite3.Connection, name: str) -> None:
    troubles = sqlite_troubles(file, load("sqlite")[name])
    if name in WHOLE:
        troubles = [each for each in troubles if not each.endswith(WHOLE[name])]
    if name in SORTED:
        troubles = [each for each in troubles if "ORDER BY" not in each]
    assert troubles == []


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM oncekey_claims WHERE id < :before ORDER BY created_at DESC LIMIT 10",
        "SELECT * FROM oncekey_executions WHERE name = :name",
        "SELECT * FROM oncekey_records WHERE key = :key ORDER BY id DESC LIMIT 10",
    ],
)
def test_a_list_without_an_index_is_seen_on_sqlite(file: sqlite3.Connection, query: str) -> None:
    assert sqlite_troubles(file, query)


# -- PostgreSQL --------------------------------------------------------------------------------


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    url = new_schema(postgres.url())
    place = Place(url)
    place.open()
    with psycopg.connect(url, autocommit=True) as connection:
        # What is left out if there is any other way is there only where there is none.
        for way in ("enable_seqscan", "enable_sort", "enable_bitmapscan"):
            connection.execute(f"SET {way} = off")
        yield connection
    place.close()


def postgres_troubles(database: psycopg.Connection[Any], query: str) -> list[str]:
    values = {name: 0 if name in _NUMBERS else "x" for name in re.findall(r"%\((\w+)\)s", query)}
    found = database.execute(f"EXPLAIN (FORMAT JSON) {query}", values).fetchone()
    assert found is not None
    (plan,) = found[0] if isinstance(found[0], list) else json.loads(found[0])
    return list(_postgres_steps(plan["Plan"]))


_NUMBERS = {
    "before", "since", "lowest", "skip", "limit", "now", "state", "status", "sort", "kind",
    "operation", "execution", "at", "after",
}  # fmt: skip


def _postgres_steps(node: dict[str, Any]) -> Iterator[str]:
    kind = node["Node Type"]
    if kind in {"Sort", "Incremental Sort"}:
        yield f"{kind} by {node.get('Sort Key')}"
    if kind == "Seq Scan" and node["Relation Name"] in BIG:
        yield f"Seq Scan of {node['Relation Name']}"
    for child in node.get("Plans", ()):
        yield from _postgres_steps(child)


@pytest.mark.postgres
def test_a_list_on_postgres_reads_no_whole_table(database: psycopg.Connection[Any]) -> None:
    troubles = {name: postgres_troubles(database, load("postgres")[name]) for name in LISTS}
    for name in SORTED | MERGED:
        troubles[name] = [each for each in troubles[name] if not each.startswith("Sort by")]
    assert {name: found for name, found in troubles.items() if found} == {}


@pytest.mark.postgres
@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM oncekey_claims WHERE id < %(before)s ORDER BY created_at DESC LIMIT 10",
        "SELECT * FROM oncekey_executions WHERE name = %(name)s",
    ],
)
def test_a_list_without_an_index_is_seen_on_postgres(
    database: psycopg.Connection[Any], query: str
) -> None:
    assert postgres_troubles(database, query)
