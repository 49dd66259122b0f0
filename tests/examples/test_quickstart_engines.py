"""The quickstart, unchanged, on every kind of store: only the address of the ledger is another."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.fixtures.command import Run
from tests.fixtures.ports import lasting_port
from tests.fixtures.postgres_schema import new_schema
from tests.fixtures.served import Serve, Served, serve_quickstart
from tests.fixtures.tour import curl, offered, paste, told

pytestmark = pytest.mark.timeout(300)

STORES = [
    "sqlite",
    pytest.param("postgres", marks=pytest.mark.postgres),
    pytest.param("restate", marks=pytest.mark.restate),
]


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    match request.param:
        case "postgres":
            return new_schema(request.getfixturevalue("postgres").url())
        case "restate":
            # At the same place after a restart.
            endpoint = f"http://127.0.0.1:{lasting_port()}"
            url: str = request.getfixturevalue("bare_restate").url(endpoint=endpoint)
            return url
        case _:
            return f"sqlite:///{tmp_path}/oncekey.db"


@pytest.fixture
def begin(serve: Serve, store: str) -> Callable[[], Served]:
    return lambda: serve_quickstart(serve, ONCEKEY_STORE__URL=store)


def test_every_step_of_it(
    begin: Callable[[], Served], store: str, tmp_path: Path, oncekey: Run
) -> None:
    served = begin()
    assert f"OnceKey serves app:app and flows:flows and the upstream payments on {served.url}" in (
        served.banner
    )

    first, again, other = [curl(words) for words in served.curls[:3]]
    assert (first[0], again[0], other[0]) == (201, 201, 422)
    assert again[2] == first[2]
    assert again[1]["idempotent-replayed"] == "true"
    assert json.loads(other[2])["type"].endswith("/idempotency-key-reused")
    without = httpx.post(f"{served.url}/orders", json={"item": "tea"})
    assert without.json()["type"].endswith("/idempotency-key-missing")

    paid, paid_again = [curl(served.curls[3]) for _ in range(2)]
    assert (paid[0], paid_again[2]) == (201, paid[2])
    assert paid_again[1]["idempotent-replayed"] == "true"

    start, deliver, wait = offered(served)[4:]
    # The webhook first: it is parked, and the workflow finds it.
    parked, began, ended, same, _ = told(
        paste([deliver, start, wait, "echo", start, wait], tmp_path, store)
    )
    assert (parked, same) == ("parked", began)
    assert json.loads(ended)["result"] == {"order": 42, "text": "tea: 4.99 paid"}

    shown = json.loads(oncekey("keys", "show", "try-1", "--json", "--url", store).stdout)
    assert (shown["state"], shown["status"]) == ("succeeded", 201)
    assert oncekey("keys", "purge", "try-1", "--yes", "--url", store).returncode == 0
    assert "idempotent-replayed" not in curl(served.curls[0])[1]
    code, errors = served.stop()
    # Nothing but the two that were refused.
    ways = [json.loads(line)["way"] for line in errors.splitlines()]
    assert (code, ways) == (0, ["mismatch", "refused"])


def test_two_at_once_are_one_order(begin: Callable[[], Served]) -> None:
    served = begin()

    def order(_: int) -> httpx.Response:
        headers = {"Idempotency-Key": "slow-1"}
        url = f"{served.url}/orders/slow"
        return httpx.post(url, json={"item": "tea"}, headers=headers, timeout=60)

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(order, range(4)))
    assert {each.status_code for each in answers} == {201}
    assert len({each.text for each in answers}) == 1
    replayed = sorted(each.headers.get("idempotent-replayed", "") for each in answers)
    assert replayed == ["", "true", "true", "true"]


def test_it_outlives_its_process(
    begin: Callable[[], Served], store: str, tmp_path: Path, oncekey: Run
) -> None:
    served = begin()
    order = curl(served.curls[0])
    start, *_ = offered(served)[4:]
    (began,) = told(paste([start], tmp_path, store))
    shown = ("workflows", "show", began, "--json", "--url", store)
    while json.loads(oncekey(*shown).stdout)["status"] != "waiting":
        continue
    served.kill()

    again = begin()
    assert curl(again.curls[0])[2] == order[2]
    same, delivered, ended = told(paste(offered(again)[4:], tmp_path, store))
    assert (same, delivered) == (began, "resolved")
    assert json.loads(ended)["status"] == "succeeded"
    # The charge was made once, before the kill.
    assert [each["name"] for each in json.loads(oncekey(*shown).stdout)["journal"]] == [
        "create-charge", "payment", "sleep", "send_receipt",
    ]  # fmt: skip
