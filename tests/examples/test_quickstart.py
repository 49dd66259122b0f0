"""The quickstart, as its README tells it: served, tried, looked at and stopped."""

import json
import re
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from email.parser import Parser

import httpx
import pytest

from tests.fixtures.command import Run
from tests.fixtures.served import QUICKSTART, Served

SLOW = {"Idempotency-Key": "slow-1"}


def curl(words: list[str]) -> tuple[int, dict[str, str], str]:
    """Run one of the offered commands; answers status, headers and body."""
    assert words[:2] == ["curl", "-i"]
    done = subprocess.run(
        ["curl", "--silent", "--show-error", *words[1:]],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    head, _, body = done.stdout.replace("\r\n", "\n").partition("\n\n")
    first, _, lines = head.partition("\n")
    headers = {name.lower(): value for name, value in Parser().parsestr(lines).items()}
    return int(first.split()[1]), headers, body


def test_the_three_commands_it_prints(quickstart: Served) -> None:
    first, again, other = [curl(words) for words in quickstart.curls]

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
def quickstart_that_conflicts(serve: object) -> Served:
    assert callable(serve)
    served = serve(
        "--config", str(QUICKSTART / "oncekey.toml"), ONCEKEY_ROUTES__1__IN_FLIGHT="conflict"
    )
    assert isinstance(served, Served)
    return served


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


def test_the_readme_shows_the_commands_it_prints(quickstart: Served) -> None:
    readme = (QUICKSTART / "README.md").read_text()
    shown = re.findall(r"^\$ (curl -i .*)$", readme, re.MULTILINE)
    printed = [
        line.strip().partition("    #")[0].replace(quickstart.url, "http://127.0.0.1:8700")
        for line in quickstart.banner.splitlines()
        if line.strip().startswith("curl")
    ]
    assert shown == printed[:2]
