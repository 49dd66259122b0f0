"""The quickstart, as its README tells it: served, tried, looked at and stopped."""

import json
import re
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.fixtures.command import SCRIPT, Run
from tests.fixtures.served import QUICKSTART, Serve, Served, serve_quickstart
from tests.fixtures.tour import curl, offered, paste, told

SLOW = {"Idempotency-Key": "slow-1"}


def test_the_three_commands_it_prints(quickstart: Served) -> None:
    first, again, other = [curl(words) for words in quickstart.curls[:3]]

    assert first[0] == 201
    assert "idempotent-replayed" not in first[1]
    assert again[0] == 201
    assert again[2] == first[2]
    assert again[1]["idempotent-replayed"] == "true"
    assert again[1]["x-operation-id"] == first[1]["x-operation-id"]
    assert other[0] == 422
    assert json.loads(other[2])["type"].endswith("/idempotency-key-reused")
    assert len(httpx.get(f"{quickstart.url}/orders").json()) == 1


def test_a_route_that_requires_a_key(quickstart: Served) -> None:
    refused = httpx.post(f"{quickstart.url}/orders", json={"item": "tea"})
    assert refused.status_code == 400
    assert refused.json()["type"].endswith("/idempotency-key-missing")


def test_two_at_once_are_one_order(quickstart: Served) -> None:
    def order() -> httpx.Response:
        url = f"{quickstart.url}/orders/slow"
        return httpx.post(url, json={"item": "tea"}, headers=SLOW, timeout=30)

    with ThreadPoolExecutor(2) as threads:
        one, two = [each.result() for each in [threads.submit(order), threads.submit(order)]]

    assert (one.status_code, two.status_code) == (201, 201)
    assert one.json() == two.json()
    assert sorted(each.headers.get("idempotent-replayed", "") for each in (one, two)) == [
        "",
        "true",
    ]


def test_without_attach_the_second_is_told_to_wait(quickstart_that_conflicts: Served) -> None:
    url = f"{quickstart_that_conflicts.url}/orders/slow"
    with ThreadPoolExecutor(2) as threads:
        both = [
            threads.submit(httpx.post, url, json={"item": "tea"}, headers=SLOW, timeout=30)
            for _ in range(2)
        ]
    answers = sorted((each.result() for each in both), key=lambda each: each.status_code)
    assert [each.status_code for each in answers] == [201, 409]
    assert answers[1].headers["retry-after"] == "1"
    assert answers[1].json()["type"].endswith("/request-in-progress")


@pytest.fixture
def quickstart_that_conflicts(serve: Serve) -> Served:
    return serve_quickstart(serve, ONCEKEY_ROUTES__1__IN_FLIGHT="conflict")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_in_good_order(quickstart: Served, oncekey: Run, number: int) -> None:
    """A request that runs when the signal comes is finished, answered and kept."""
    with ThreadPoolExecutor(1) as threads:
        url = f"{quickstart.url}/orders/slow"
        running = threads.submit(httpx.post, url, json={"item": "tea"}, headers=SLOW, timeout=30)
        while not json.loads(oncekey("keys", "list", "--json").stdout):
            continue
        code, errors = quickstart.stop(number)

    assert (code, errors) == (0, "")
    assert running.result().status_code == 201
    (kept,) = json.loads(oncekey("keys", "list", "--json").stdout)
    assert (kept["key"], kept["state"]) == ("slow-1", "succeeded")


def test_a_request_through_the_edge(quickstart: Served) -> None:
    words = quickstart.curls[3]
    first, again = curl(words), curl(words)
    assert (first[0], again[0]) == (201, 201)
    assert again[2] == first[2]
    assert again[1]["idempotent-replayed"] == "true"
    seen = json.loads(first[2])
    assert re.fullmatch("t-default:_tenant:service:ak_[0-9a-f]{16}:pay-1", seen["key"])
    key = words[words.index("-H") + 1].removeprefix("Authorization: Bearer ")
    line = {"Authorization": f"Bearer {key}"}
    url = f"{quickstart.url}/api/v1/payments"
    assert httpx.get(url, headers=line).json() == [seen]
    found = httpx.get(f"{url}/by-idempotency-key/pay-1", headers=line)
    assert found.json() == seen
    assert httpx.get(f"{url}/by-idempotency-key/pay-1").status_code == 401


def test_a_workflow_by_three_commands(quickstart: Served, tmp_path: Path) -> None:
    start, deliver, wait = offered(quickstart)[4:]
    first, delivered, ended = told(paste([start, deliver, wait], tmp_path))

    assert re.fullmatch("wf_[0-9a-f]{16}", first)
    assert delivered == "resolved"
    assert json.loads(ended)["status"] == "succeeded"
    assert json.loads(ended)["result"] == {"order": 42, "text": "tea: 4.99 paid"}


def test_the_webhook_may_come_first_and_everything_twice(
    quickstart: Served, tmp_path: Path
) -> None:
    start, deliver, wait = offered(quickstart)[4:]
    done = paste([deliver, start, wait, "echo", start, deliver, wait], tmp_path)

    parked, first, one, second, again, two = told(done)
    assert parked == "parked"
    assert first == second
    assert json.loads(one)["status"] == "succeeded"
    assert again == "parked"
    assert json.loads(two) == json.loads(one)


def test_a_workflow_outlives_its_process(
    serve: Serve, quickstart: Served, tmp_path: Path, oncekey: Run
) -> None:
    start, *_ = offered(quickstart)[4:]
    first = paste([start], tmp_path).stdout.strip()
    while json.loads(oncekey("workflows", "show", first, "--json").stdout)["status"] != "waiting":
        continue
    quickstart.kill()

    again = serve_quickstart(serve)
    second, _, ended = told(paste(offered(again)[4:], tmp_path))
    assert second == first
    assert json.loads(ended)["status"] == "succeeded"
    shown = json.loads(oncekey("workflows", "show", first, "--json").stdout)
    assert [each["name"] for each in shown["journal"]] == [
        "create-charge", "payment", "sleep", "send_receipt",
    ]  # fmt: skip


def test_the_readme_shows_the_commands_it_prints(quickstart: Served) -> None:
    readme = (QUICKSTART / "README.md").read_text()
    shown = re.findall(r"^\$ ((?:curl|ID=|oncekey webhooks).*)$", readme, re.MULTILINE)
    printed = [
        re.sub(r"(ok|wh)_[\w-]+", r"\1_...", line.partition("    #")[0])
        .replace(quickstart.url, "http://127.0.0.1:8700")
        .replace(str(SCRIPT), "oncekey")
        for line in offered(quickstart)
    ]
    assert shown == [*printed[:2], *printed[3:]]
