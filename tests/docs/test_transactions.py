"""The page on transactions, on the databases and in the framework that its blocks only speak of."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

import oncekey
from tests.fixtures.pages import code_of, run_page

PAGE = "how-to/transactions.md"
DJANGO = """
import django
from django.conf import settings
database = {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.db"}
settings.configure(DATABASES={"default": database})
django.setup()
assert order_with_django(ledger, 9) == 9
assert order_with_django(ledger, 9) == 9
assert connection.execute("SELECT count(*) FROM orders WHERE number = 9").fetchone() == (1,)
"""


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.chdir(tmp_path)
    page = run_page(PAGE)
    yield page
    page.engine.dispose()
    page.connection.close()
    page.ledger.close()


def orders(item: str) -> int:
    database = sqlite3.connect("shop.db")
    try:
        found = database.execute("SELECT count(*) FROM orders WHERE item = ?", [item]).fetchone()
    finally:
        database.close()
    return int(found[0])


@pytest.mark.postgres
def test_psycopg(page: Any, postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE orders (number INTEGER, item TEXT)")
    ledger = oncekey.open(postgres_url)
    try:
        assert page.order_with_psycopg(postgres_url, ledger, 1) == 1
        assert page.order_with_psycopg(postgres_url, ledger, 1) == 1
    finally:
        ledger.close()
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT count(*) FROM orders").fetchone() == (1,)


def test_django(tmp_path: Path) -> None:
    # Django is configured once per process, and this one belongs to other tests.
    subprocess.run([sys.executable, "-c", code_of(PAGE) + DJANGO], cwd=tmp_path, check=True)


def client_of(app: Any) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://shop")


@pytest.mark.anyio
async def test_a_handler_stores_order_and_answer_together(page: Any) -> None:
    request = {"json": {"item": "pie"}, "headers": {"Idempotency-Key": "pie-1"}}
    async with client_of(page.app) as client:
        first = await client.post("/orders", **request)
        again = await client.post("/orders", **request)
    assert (first.status_code, first.json()) == (201, {"ordered": "pie"})
    assert (again.status_code, again.content) == (201, first.content)
    assert again.headers["idempotent-replayed"] == "true"
    assert orders("pie") == 1


@pytest.mark.anyio
async def test_a_handler_that_rolls_back_is_run_again(page: Any) -> None:
    request = {"json": {"item": "nothing"}, "headers": {"Idempotency-Key": "nothing-1"}}
    async with client_of(page.app) as client:
        answers = [await client.post("/orders", **request) for _ in range(2)]
    # Not a 409: the claim does not outlive the rollback.
    assert [answer.status_code for answer in answers] == [500, 500]
    assert orders("nothing") == 0


@pytest.mark.anyio
async def test_what_is_rolled_back_is_run_again_whatever_is_answered(page: Any) -> None:
    request = {"json": {"item": "too much"}, "headers": {"Idempotency-Key": "much-1"}}
    async with client_of(page.app) as client:
        answers = [await client.post("/orders", **request) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [422, 422]
    assert [answer.headers.get("idempotent-replayed") for answer in answers] == [None, None]
    assert orders("too much") == 0
