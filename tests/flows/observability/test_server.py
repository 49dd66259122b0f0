"""Metrics of a whole server: who may read them, several processes, crashes, sweeps and webhooks."""

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fixtures.collected import Collector
from tests.fixtures.command import Run
from tests.fixtures.edge_site import EdgeSite, MakeSite
from tests.fixtures.scraped import Scraped, scrape
from tests.fixtures.striped import EVENT, FLOWS, PLACE, Stripe, check_traces, pay_twice

OPEN = '\n[metrics]\naccess = "anyone"\n'
ORDERS = "POST /api/v1/orders"
HIT = "idempotency_cache_hit_total"


@pytest.fixture
def admin(oncekey: Run, tmp_path: Path) -> str:
    """The secret of an admin of the server in this folder."""
    url = f"sqlite:///{tmp_path}/oncekey.db"
    assert oncekey("migrate", "--url", url).returncode == 0
    made = oncekey("apikeys", "create", "--admin", "--json", "--url", url)
    assert made.returncode == 0, made.stderr
    secret: str = json.loads(made.stdout)["secret"]
    return secret


def until(site: EdgeSite, found: Any) -> Scraped:
    """What is told in the background comes in its time."""
    deadline = time.monotonic() + 60
    while not found(seen := scrape(site.url)):
        assert time.monotonic() < deadline, seen.text
    return seen


def test_only_admins_may_read_them(edge_site: MakeSite, admin: str) -> None:
    site = edge_site()
    assert scrape(site.url, admin).value("oncekey_build_info") == 1
    for headers in ({}, {"Authorization": "Bearer oka_nonsense"}, {"X-API-Key": "ok_a"}):
        refused = httpx.get(f"{site.url}/metrics", headers=headers, trust_env=False)
        assert refused.status_code == 401
        assert refused.headers["content-type"] == "application/problem+json"
        assert "oncekey_build_info" not in refused.text
    assert site.client().get("/metrics").status_code == 401
    assert httpx.post(f"{site.url}/metrics", trust_env=False).status_code == 405
    open_metrics = {"Authorization": f"Bearer {admin}", "Accept": "application/openmetrics-text"}
    told = httpx.get(f"{site.url}/metrics", headers=open_metrics, trust_env=False)
    assert told.headers["content-type"].startswith("application/openmetrics-text")
    assert told.text.endswith("# EOF\n")


def test_without_metrics_there_is_no_page(edge_site: MakeSite) -> None:
    site = edge_site('\n[metrics]\nenabled = false\n[log]\nrequests = "none"\n')
    assert site.post(key="k-1").status_code == 201
    assert site.post(key="k-1").headers["idempotent-replayed"] == "true"
    assert httpx.get(f"{site.url}/metrics", trust_env=False).status_code == 404


def test_they_may_be_told_elsewhere(edge_site: MakeSite) -> None:
    site = edge_site(f'{OPEN}path = "/oncekey/metrics"\n')
    told = httpx.get(f"{site.url}/oncekey/metrics", trust_env=False)
    assert "oncekey_build_info" in told.text
    assert httpx.get(f"{site.url}/metrics", trust_env=False).status_code == 404


def test_every_process_tells_of_all_of_them(edge_site: MakeSite) -> None:
    site = edge_site(OPEN, environ={"ONCEKEY_SERVER__WORKERS": "2"})
    for number in range(30):
        assert site.post(key=f"k-{number % 3}").status_code == 201
    name = "idempotency_key_present_total"
    for _ in range(8):
        seen = until(site, lambda seen: seen.value(name, endpoint=ORDERS) == 30)
    assert seen.value(HIT, endpoint=ORDERS) == 27
    children = Path(f"/proc/{site.served.pid}/task/{site.served.pid}/children").read_text()
    workers = [int(each) for each in children.split() if _is_worker(int(each))]
    os.kill(workers[0], signal.SIGKILL)
    for _ in range(8):
        assert until(site, lambda seen: seen.value(name) >= 30).value(name) == 30
    assert site.post(key="k-1").status_code == 201
    until(site, lambda seen: seen.value(name, endpoint=ORDERS) == 31)


def _is_worker(pid: int) -> bool:
    return "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text()


def test_claims_that_are_taken_over(edge_site: MakeSite) -> None:
    site = edge_site(OPEN)

    def post() -> None:
        with pytest.raises(httpx.TransportError):
            site.post(key="left", sleep=20)

    first = threading.Thread(target=post)
    first.start()
    deadline = time.monotonic() + 30
    while not site.behind.seen:
        assert time.monotonic() < deadline
    site.served.kill()
    first.join()
    again = edge_site(OPEN)
    assert again.post(key="left", sleep=20).status_code in {201, 409, 504}
    seen = scrape(again.url)
    assert seen.value("oncekey_takeovers_total", endpoint=ORDERS) == 1


def test_sweeps_and_what_the_store_holds(edge_site: MakeSite) -> None:
    environ = {
        "ONCEKEY_STORE__SWEEP_INTERVAL": "50ms",
        "ONCEKEY_STORE__LEASE": "1s",
        "ONCEKEY_RETENTION__INTERACTIVE": "10ms",
    }
    site = edge_site(OPEN, environ=environ)
    for number in range(5):
        site.post(key=f"k-{number}")
    seen = until(site, lambda seen: seen.value("oncekey_sweep_deleted_total") >= 5)
    assert seen.value("oncekey_sweep_seconds_count") >= 1
    seen = until(site, lambda seen: "oncekey_workflows{" in seen.text)
    assert seen.value("oncekey_workflows", state="waiting") == 0
    assert seen.value("oncekey_promises", state="pending") == 0
    for name in ("claims_in_progress", "oldest_claim_seconds", "oldest_waiting_seconds"):
        assert f"oncekey_{name} " in seen.text


def test_deliveries(edge_site: MakeSite, admin: str) -> None:
    site = edge_site(OPEN)
    stripe = Stripe(site.url, admin)
    for _ in range(2):
        assert stripe.deliver(EVENT).status_code == 200
    assert stripe.deliver(EVENT, "whsec_" + "b" * 32).status_code == 401
    assert stripe.deliver({"type": "no id"}).status_code == 400
    seen = scrape(site.url)
    whose = {"tenant": "acme", "project": "shop"}
    name = "oncekey_deliveries_total"
    for verdict, count in (("accepted", 1), ("replayed", 1), ("refused", 2)):
        assert seen.value(name, **whose, provider="stripe", verdict=verdict) == count
    failed = "transport_translation_failed_total"
    assert seen.value(failed, **whose, endpoint=PLACE, provider="stripe") == 1
    assert seen.value("idempotency_key_present_total", endpoint=PLACE, case="B") == 2
    assert seen.value(HIT, **whose, endpoint=PLACE, status="200") == 1
    ways = {
        way: seen.value("oncekey_request_seconds_count", endpoint=PLACE, way=way)
        for way in ("new", "replay", "refused")
    }
    assert ways == {"new": 1, "replay": 1, "refused": 2}


def test_a_workflow_lives_in_a_trace_of_its_own(
    edge_site: MakeSite, admin: str, collector: Collector, tmp_path: Path
) -> None:
    (tmp_path / "flows.py").write_text(FLOWS)
    traces = f'\n[app]\nworkflows = "flows:flows"\n[traces]\nendpoint = "{collector.url}"\n'
    site = edge_site(OPEN + traces)
    pay_twice(site.url, admin)
    site.served.stop()
    check_traces(collector)
