"""The same of an edge on Restate: its metrics, the fields of its log, and its traces."""

import json
from pathlib import Path

import pytest

from oncekey.webhooks.keys import make_key_file
from tests.fixtures.collected import Collector
from tests.fixtures.command import Run
from tests.fixtures.restate_edge import RestateEdges, ask
from tests.fixtures.scraped import scrape
from tests.fixtures.striped import FLOWS, check_traces, pay_twice

pytestmark = pytest.mark.restate

ORDERS = "POST /api/v1/orders"
WHOSE = {"tenant": "acme", "project": "shop", "endpoint": ORDERS}


def test_what_restate_carries_is_seen(restate_calls: RestateEdges, collector: Collector) -> None:
    site = restate_calls.open(
        f'\n[metrics]\naccess = "anyone"\n[log]\nrequests = "all"\nformat = "json"\n'
        f'[traces]\nendpoint = "{collector.url}"\n'
    )
    first, again = ask(site, "k-1"), ask(site, "k-1")
    other = ask(site, "k-1", body={"item": "coffee"})
    assert (again.headers["idempotent-replayed"], other.status_code) == ("true", 422)
    for answer in (first, again):
        assert "oncekey-traceparent" not in answer.headers
    (behind,) = site.behind.seen
    seen = scrape(site.url)
    assert seen.value("idempotency_key_present_total", **WHOSE, case="A") == 3
    assert seen.value("idempotency_cache_hit_total", **WHOSE, status="201") == 1
    assert seen.value("idempotency_key_collision_total", **WHOSE) == 1
    ways = {
        way: seen.value("oncekey_request_seconds_count", endpoint=ORDERS, way=way)
        for way in ("new", "replay", "mismatch")
    }
    assert ways == {"new": 1, "replay": 1, "mismatch": 1}
    _, errors = site.served.stop()
    lines = [json.loads(each) for each in errors.splitlines()]
    new, replay, _ = [each for each in lines if each["event"] == "request"]
    assert new["restate_invocation_id"].startswith("inv_")
    assert (new["restate_cache_hit"], replay["restate_cache_hit"]) == (False, True)
    assert new["operation_id"] == replay["operation_id"] == first.headers["x-operation-id"]
    original, replayed, _ = collector.named(ORDERS)
    assert replayed.links == [(original.trace, original.id)]
    sent = dict(behind["headers"])["traceparent"]
    assert sent.split("-")[1:3] == [original.trace, original.id]


def test_a_delivery_resumes_a_workflow(
    restate_edges: RestateEdges, collector: Collector, oncekey: Run, tmp_path: Path
) -> None:
    (tmp_path / "flows.py").write_text(FLOWS)
    make_key_file(tmp_path / "webhooks.key")
    site = restate_edges.open(
        f'\n[app]\nworkflows = "flows:flows"\n[traces]\nendpoint = "{collector.url}"\n'
    )
    url = restate_edges.server.url(space=restate_edges.space)
    made = oncekey("apikeys", "create", "--admin", "--json", "--url", url)
    pay_twice(site.url, json.loads(made.stdout)["secret"])
    site.served.stop()
    check_traces(collector)
