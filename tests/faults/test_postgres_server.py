"""The PostgreSQL that the other tests lean on keeps its word."""

import os
import select
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.fixtures.postgres_server import PostgresServer

pytestmark = pytest.mark.postgres


def test_each_test_gets_an_empty_database(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        tables = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
        assert tables.fetchone() == (0,)


def test_two_tests_share_nothing(postgres: PostgresServer, postgres_url: str) -> None:
    other = postgres.create_database()
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE seen (n int)")
    with (
        psycopg.connect(postgres.url(other)) as connection,
        pytest.raises(psycopg.errors.UndefinedTable),
    ):
        connection.execute("SELECT * FROM seen")
    postgres.drop_database(other)


def test_commits_reach_the_disk(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SHOW fsync").fetchone() == ("on",)
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)


def test_a_crash_cuts_connections_and_keeps_what_was_committed(
    postgres: PostgresServer, postgres_url: str
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept (n int)")
        connection.execute("INSERT INTO kept VALUES (1)")
        postgres.restart()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT n FROM kept").fetchall() == [(1,)]
    assert "was not properly shut down" in postgres.log


def test_a_stopped_server_refuses_connections(postgres: PostgresServer, postgres_url: str) -> None:
    postgres.stop()
    assert not postgres.running
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(postgres_url)


def test_the_server_is_running_again_after_a_test_that_stopped_it(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_closing_leaves_neither_server_nor_file() -> None:
    server = PostgresServer()
    server.start()
    with psycopg.connect(server.url()) as connection:
        row = connection.execute("SHOW data_directory").fetchone()
    assert row is not None

    server.close()

    assert not Path(row[0]).parent.exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(server.url())


def test_the_server_does_not_outlive_a_killed_test_run() -> None:
    started = "from tests.fixtures.postgres_server import PostgresServer as P; s = P(); s.start()"
    said = "print(s.url(), s._guard.pid, flush=True); input()"
    run = subprocess.Popen(
        [sys.executable, "-c", f"{started}; {said}"],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert run.stdout is not None
    url, guard = run.stdout.readline().split()
    watch = os.pidfd_open(int(guard))

    run.kill()
    run.communicate()

    select.select([watch], [], [])
    os.close(watch)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)
