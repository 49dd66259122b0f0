"""The dashboard: Grafana can load it, Prometheus answers all it asks, from a server that runs."""

import itertools
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
import pytest
import yaml

from tests.fixtures.command import Run
from tests.fixtures.prometheus import (
    DASHBOARD,
    alerts,
    metrics_in,
    panels,
    prometheus,
    promtool,
    queries,
)
from tests.fixtures.scraped import scrape
from tests.fixtures.served import Serve, Served

BOARD: dict[str, Any] = json.loads(DASHBOARD.read_text())
VARIABLES = {each["name"]: each for each in BOARD["templating"]["list"]}
PARTS = re.compile(r"_(?:bucket|count|sum)$")
SHOP = """
async def app(scope, receive, send):
    assert scope["type"] == "http"
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 201, "headers": []})
    await send({"type": "http.response.body", "body": b"made"})
"""


@pytest.fixture
def served(serve: Serve, tmp_path: Path) -> Served:
    (tmp_path / "shop.py").write_text(SHOP)
    return serve("--app", "shop:app", ONCEKEY_SERVER__API="true")


@pytest.fixture
def admin(served: Served, oncekey: Run, tmp_path: Path) -> str:
    """The secret of a key for whoever reads the metrics."""
    url = f"sqlite:///{tmp_path}/oncekey.db"
    made = oncekey("apikeys", "create", "--admin", "--json", "--url", url)
    secret: str = json.loads(made.stdout)["secret"]
    return secret


def families_of(page: str) -> set[str]:
    """Every metric that there is, with or without a sample so far."""
    return {name.removesuffix("_total") for name in re.findall(r"(?m)^# TYPE (\S+)", page)}


def test_all_that_is_asked_for_is_there(served: Served, admin: str) -> None:
    asked = metrics_in([*queries(), *(each["expr"] for each in alerts())])
    asked |= metrics_in([each.get("definition", "") for each in VARIABLES.values()])
    # What the store holds is counted beside the requests, a moment later.
    while "oncekey_workflows" not in (page := scrape(served.url, admin).text):
        continue
    assert {PARTS.sub("", name).removesuffix("_total") for name in asked} <= families_of(page)


def test_all_that_there_is_is_shown(served: Served, admin: str) -> None:
    shown = {PARTS.sub("", name).removesuffix("_total") for name in metrics_in(queries())}
    while "oncekey_workflows" not in (page := scrape(served.url, admin).text):
        continue
    assert families_of(page) - shown == set()


def test_prometheus_reads_every_query(tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{number}", "expr": each} for number, each in enumerate(queries(), 1)
    ]
    file = tmp_path / "panels.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    done = promtool("check", "rules", file)
    assert done.returncode == 0, done.stderr
    assert f"SUCCESS: {len(rules)} rules found" in done.stdout


@contextmanager
def customers(url: str) -> Iterator[None]:
    """Who order, and order again with the same key, all the time."""
    enough = Event()

    def order() -> None:
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
            for number in itertools.count():
                if enough.is_set():
                    return
                for _ in range(2):
                    client.post("/orders", headers={"Idempotency-Key": f"order-{number}"})

    thread = Thread(target=order)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()


def job(name: str, served: Served, secret: str | None) -> dict[str, Any]:
    target = served.url.removeprefix("http://")
    known = {} if secret is None else {"authorization": {"credentials": secret}}
    return {"job_name": name, "static_configs": [{"targets": [target]}], **known}


def test_a_prometheus_answers_it(served: Served, admin: str, tmp_path: Path) -> None:
    jobs = [job("oncekey", served, admin), job("stranger", served, None)]
    with prometheus(tmp_path, jobs) as asked, customers(served.url):
        asked.ask_until_found('up{job="oncekey"} == 1')
        asked.ask_until_found('up{job="stranger"} == 0')
        for expression in queries():
            asked.ask(expression)

        ways = "sum by (way) (rate(oncekey_request_seconds_count[1m])) > 0"
        while {each["metric"]["way"] for each in asked.ask(ways)} < {"new", "replay"}:
            continue
        rate = next(each for each in queries() if each.startswith("(sum(rate(idempotency_cache"))
        (hits,) = asked.ask_until_found(f"{rate} > 0")
        assert 0 < float(hits["value"][1]) < 1
        asked.ask_until_found(
            "histogram_quantile(0.99, sum by (le, store) "
            "(rate(oncekey_store_commit_seconds_bucket[1m]))) > 0"
        )

        while any(each["health"] == "unknown" for each in asked.rules()):
            continue
        assert [(each["health"], each["state"]) for each in asked.rules()] == [
            ("ok", "inactive")
        ] * len(alerts())


def test_its_variables_choose() -> None:
    assert list(VARIABLES) == ["datasource", "tenant", "project", "endpoint"]
    assert VARIABLES["datasource"]["query"] == "prometheus"
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(BOARD))) - {"__rate_interval", "__all"}
    assert used == set(VARIABLES)
    sources = {json.dumps(each) for each in _found("datasource", BOARD)}
    assert sources == {json.dumps({"type": "prometheus", "uid": "${datasource}"})}


def _found(name: str, value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        if name in value:
            yield value[name]
        for each in value.values():
            yield from _found(name, each)
    elif isinstance(value, list):
        for each in value:
            yield from _found(name, each)


def test_its_panels_say_what_they_show_and_have_their_place() -> None:
    everything = BOARD["panels"]
    assert len({each["id"] for each in everything}) == len(everything)
    assert all(each["title"] and each["description"] for each in panels())
    taken: set[tuple[int, int]] = set()
    for each in everything:
        place = each["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = set(
            itertools.product(
                range(place["x"], place["x"] + place["w"]),
                range(place["y"], place["y"] + place["h"]),
            )
        )
        assert not cells & taken, each["title"]
        taken |= cells


def test_its_rows_are_those_that_operators_look_for() -> None:
    rows = [each["title"] for each in BOARD["panels"] if each["type"] == "row"]
    assert rows == [
        "Traffic and replays",
        "Hit rate",
        "Refusals",
        "Latency",
        "Store",
        "Promises and workflows",
        "Oldest waiting",
        "Deliveries",
        "Sweep",
    ]


def test_the_command_gives_it(oncekey: Run) -> None:
    assert json.loads(oncekey("observe", "dashboard").stdout) == BOARD
