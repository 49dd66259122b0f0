"""An outage of the store is seen from outside: what became of requests, and that it is so."""

import json

import httpx
import pytest

from oncekey.webhooks.keys import new_key
from tests.fixtures.command import Run
from tests.fixtures.edge_site import MakeSite
from tests.fixtures.postgres_server import PostgresServer
from tests.fixtures.scraped import scrape
from tests.fixtures.striped import EVENT, PLACE, Stripe

pytestmark = pytest.mark.postgres

OPEN_ROUTE = """
[[routes]]
path = "/api/v1/open"
methods = ["POST"]
upstream = "behind"
policy = "REQUIRED_A"
fail_open = true
"""
NAME = "oncekey_request_seconds_count"


def test_what_becomes_of_requests_meanwhile(
    edge_site: MakeSite, postgres: PostgresServer, postgres_url: str, oncekey: Run
) -> None:
    environ = {"ONCEKEY_STORE__URL": postgres_url, "ONCEKEY_WEBHOOK_KEY": new_key()}
    environ["ONCEKEY_SERVER__GRACE"] = "1s"
    site = edge_site(OPEN_ROUTE, environ=environ)
    made = oncekey("apikeys", "create", "--admin", "--json", "--url", postgres_url)
    admin, stranger = json.loads(made.stdout)["secret"], "oka_" + "a" * 43
    stripe = Stripe(site.url, admin)
    assert scrape(site.url, admin).value("oncekey_build_info") == 1
    postgres.stop()
    assert site.client().post("/api/v1/open", headers={"Idempotency-Key": "k"}).status_code == 201
    assert stripe.deliver(EVENT).status_code == 503
    caller = {"X-API-Key": "ok_" + "a" * 43, "Idempotency-Key": "k"}
    refused = httpx.post(f"{site.url}/api/v1/orders", headers=caller, trust_env=False, timeout=60)
    assert refused.status_code == 503
    seen = scrape(site.url, admin)
    assert seen.value(NAME, endpoint="POST /api/v1/open", way="passed") == 1
    assert seen.value("oncekey_unprotected_total", endpoint="POST /api/v1/open") == 1
    assert seen.value(NAME, endpoint=PLACE, way="failed") == 1
    assert seen.value(NAME, endpoint="POST /api/v1/orders", way="failed") == 1
    headers = {"Authorization": f"Bearer {stranger}"}
    told = httpx.get(f"{site.url}/metrics", headers=headers, trust_env=False, timeout=60)
    assert (told.status_code, told.json()["type"].rpartition("/")[2]) == (503, "ledger-unavailable")
    _, errors = site.served.stop()
    lines = [json.loads(each) for each in errors.splitlines()]
    failed = [each for each in lines if each["event"] == "request" and each["way"] == "failed"]
    assert {each["endpoint"] for each in failed} == {PLACE, "POST /api/v1/orders"}
