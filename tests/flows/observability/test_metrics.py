"""Everything the edge can do with a request is seen at /metrics, from outside."""

import threading

from tests.fixtures.edge_site import MakeSite, token
from tests.fixtures.scraped import Scraped, scrape

OPEN = '\n[metrics]\naccess = "anyone"\n'
ORDERS = "POST /api/v1/orders"
WHOSE = {"tenant": "acme", "project": "shop", "endpoint": ORDERS}


def times(seen: Scraped, way: str, endpoint: str = ORDERS) -> float:
    return seen.value("oncekey_request_seconds_count", endpoint=endpoint, way=way)


def test_keys_and_what_became_of_them(edge_site: MakeSite) -> None:
    site = edge_site(OPEN)
    assert site.post(key="k-1", status=201).status_code == 201
    for _ in range(3):
        assert site.post(key="k-1", status=201).headers["idempotent-replayed"] == "true"
    assert (
        site.client()
        .post("/api/v1/orders", json={}, headers={"Idempotency-Key": "k-1"})
        .status_code
        == 422
    )
    seen = scrape(site.url)
    assert seen.value("idempotency_key_present_total", **WHOSE, case="A") == 5
    assert seen.value("idempotency_cache_hit_total", **WHOSE, status="201") == 3
    assert seen.value("idempotency_key_collision_total", **WHOSE) == 1
    assert (times(seen, "new"), times(seen, "replay"), times(seen, "mismatch")) == (1, 3, 1)
    assert seen.value("oncekey_requests_in_flight") == 0
    assert seen.value("oncekey_store_batch_size_count", store="sqlite") > 1
    assert seen.value("oncekey_store_commit_seconds_sum", store="sqlite") > 0
    assert seen.value("oncekey_build_info", store="sqlite") == 1
    assert "alice" not in seen.text
    assert "k-1" not in seen.text


def test_keys_that_are_missing_or_wrong(edge_site: MakeSite) -> None:
    site = edge_site(OPEN)
    assert site.post().status_code == 400
    assert site.post("/api/v1/notes").status_code == 201
    assert site.post("/hooks/in").status_code in {400, 404}
    for key in ("x" * 300, "a b", "t-x"):
        assert site.post(key=key).status_code == 400
    twice = [
        ("Idempotency-Key", "a"),
        ("Idempotency-Key", "b"),
        ("Authorization", f"Bearer {token()}"),
    ]
    assert site.client().post("/api/v1/orders", headers=twice).status_code == 400
    refused = site.client().get("/api/v1/orders", headers={"Idempotency-Key": "k"})
    assert refused.status_code == 400
    assert site.post("/api/v1/pings", key="ignored").status_code == 201
    seen = scrape(site.url)
    missing = "idempotency_key_missing_total"
    assert seen.value(missing, **WHOSE, **{"class": "REQUIRED_A"}) == 1
    notes = "POST /api/v1/notes"
    assert seen.value(missing, tenant="acme", endpoint=notes, **{"class": "ACCEPTED"}) == 1
    invalid = "idempotency_key_invalid_total"
    for reason in ("length", "charset", "prefix", "multiple"):
        assert seen.value(invalid, endpoint=ORDERS, reason=reason) == 1, reason
    assert seen.value(invalid, endpoint="GET /api/v1/orders", reason="prohibited") == 1
    assert seen.value("idempotency_key_present_total", endpoint="POST /api/v1/pings", case="C") == 1
    assert times(seen, "refused") == 5
    assert times(seen, "passed", notes) == 1


def test_conflicts_while_one_runs(edge_site: MakeSite) -> None:
    site = edge_site(OPEN)
    first = threading.Thread(target=site.post, kwargs={"key": "slow", "sleep": 3})
    first.start()
    while scrape(site.url).value("oncekey_requests_in_flight") < 1:
        pass
    while not site.behind.seen:
        pass
    assert site.post(key="slow", sleep=3).status_code == 409
    first.join()
    seen = scrape(site.url)
    assert seen.value("oncekey_conflicts_total", **WHOSE) == 1
    assert times(seen, "conflict") == 1
    assert times(seen, "new") == 1


def test_a_service_that_breaks_off(edge_site: MakeSite) -> None:
    site = edge_site(OPEN)
    assert site.post(key="dies", die="after").status_code == 502
    site.behind.join()
    assert site.post(key="dead").status_code == 502
    seen = scrape(site.url)
    assert seen.value("oncekey_uncertain_total", **WHOSE) == 1
    assert times(seen, "failed") == 2


def test_whoever_is_not_known_is_refused_and_counted(edge_site: MakeSite) -> None:
    site = edge_site(OPEN)
    assert site.client("nonsense").post("/api/v1/orders").status_code == 401
    assert times(scrape(site.url), "refused") == 1


def test_decisions_for_gateways(edge_site: MakeSite) -> None:
    site = edge_site(OPEN)
    told = {"X-Original-Method": "POST", "X-Original-URI": "/api/v1/orders"}
    client = site.client(**told)
    assert client.get("/edge/decide", headers={"Idempotency-Key": "k-1"}).status_code == 200
    assert client.get("/edge/decide", headers={"Idempotency-Key": "t-x"}).status_code == 400
    assert client.get("/edge/decide").status_code == 400
    seen = scrape(site.url)
    assert seen.value("idempotency_key_present_total", **WHOSE, case="A") == 1
    assert seen.value("idempotency_key_invalid_total", **WHOSE, reason="prefix") == 1
    assert seen.value("idempotency_key_missing_total", **WHOSE) == 1
