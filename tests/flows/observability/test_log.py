"""The log of a real server: one object a line, with the fields of a request and no secret."""

import json
import signal
from typing import Any

from tests.fixtures.edge_site import SECRET, EdgeSite, MakeSite, token

ALL = '\n[log]\nformat = "json"\nrequests = "all"\n'


def lines_of(site: EdgeSite) -> list[dict[str, Any]]:
    _, errors = site.served.stop()
    return [json.loads(line) for line in errors.splitlines()]


def test_every_protected_request_has_its_line(edge_site: MakeSite) -> None:
    site = edge_site(ALL)
    first = site.post(key="k-1")
    for _ in range(3):
        site.post(key="k-1")
    site.post()
    site.post("/api/v1/notes")
    told = [each for each in lines_of(site) if each["event"] == "request"]
    assert [each["way"] for each in told] == ["new", *["replay"] * 3, "refused", "passed"]
    new, again, *_ = told
    assert new["idempotency_case"] == "A"
    assert new["idempotency_key_namespaced"] == "t-acme:shop:user:alice:k-1"
    assert new["idempotency_source"] == "header"
    assert [each["idempotency_policy"] for each in told[:5]] == ["REQUIRED_A"] * 5
    assert new["operation_id"] == again["operation_id"] == first.headers["x-operation-id"]
    assert (new["cache_hit"], again["cache_hit"]) == (False, True)
    assert (new["tenant"], new["project"], new["status"]) == ("acme", "shop", first.status_code)
    assert new["endpoint"] == "POST /api/v1/orders"
    assert new["duration_ms"] > 0
    assert told[4]["level"] == "warning"


def test_only_trouble_is_told_by_default_and_never_a_secret(edge_site: MakeSite) -> None:
    site = edge_site()
    bearer = token()
    site.client(bearer).post(
        "/api/v1/orders", json={"card": "4242"}, headers={"Idempotency-Key": "k-1"}
    )
    site.client(f"{bearer}x").post("/api/v1/orders", json={"card": "4242"})
    site.post(key="dies", die="after")
    _, errors = site.served.stop()
    told = [json.loads(line) for line in errors.splitlines()]
    ways = [each["way"] for each in told if each["event"] == "request"]
    assert ways == ["refused", "failed"]
    for secret in (bearer, SECRET, "4242", "Bearer"):
        assert secret not in errors


def test_a_log_that_nobody_reads_holds_up_nothing(edge_site: MakeSite) -> None:
    site = edge_site(ALL)
    client = site.client(**{"Idempotency-Key": "k-1"})
    for _ in range(400):
        assert client.post("/api/v1/orders", json={}).status_code == 201
    site.served.signal(signal.SIGTERM)
    process = site.served._process
    assert process.wait(60) == 0
    # More than a pipe takes.
    assert len(process.communicate()[1]) < 100_000
