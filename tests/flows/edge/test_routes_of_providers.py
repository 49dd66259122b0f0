"""A route with the policy REQUIRED_B and a source: its provider delivers there, and nobody else."""

import json
from pathlib import Path

import httpx

from oncekey.testing import signed_delivery
from tests.fixtures.command import Run
from tests.fixtures.edge_site import MakeSite, token

ROUTE = """
[[routes]]
path = "/hooks/github"
methods = ["POST"]
upstream = "behind"
policy = "REQUIRED_B"
source = "{source}"
retention = "webhook"
"""


def test_its_provider_is_let_in_by_signature(
    edge_site: MakeSite, oncekey: Run, tmp_path: Path
) -> None:
    kept = {
        "ONCEKEY_STORE__URL": f"sqlite:///{tmp_path}/oncekey.db",
        "ONCEKEY_WEBHOOKS__KEY_FILE": f"{tmp_path}/webhooks.key",
    }
    assert oncekey("migrate", **kept).returncode == 0
    words = ("--provider", "github", "--tenant", "acme", "--project", "shop", "--json")
    made = json.loads(oncekey("webhooks", "create", *words, **kept).stdout)
    site = edge_site(ROUTE.format(source=made["id"]))

    url = f"{site.url}/hooks/github"
    sent = signed_delivery(
        "github", {"action": "opened"}, made["secret"], headers={"X-GitHub-Delivery": "guid-1"}
    )
    # A client's own key and identity count for nothing here.
    lines = {**sent.headers, "Idempotency-Key": "mine", "X-Tenant-Id": "other"}
    first = httpx.post(url, content=sent.body, headers=lines)
    again = httpx.post(url, content=sent.body, headers=lines)
    assert (first.status_code, again.status_code) == (200, 200)
    (seen,) = site.behind.seen
    told = dict(seen["headers"])
    assert told["idempotency-key"] == "t-acme:shop:service:webhook-ingest:github-guid-1"
    assert (told["x-tenant-id"], told["x-subject"]) == ("acme", "service:webhook-ingest")
    assert seen["target"] == "/hooks/github"

    forged = {**sent.headers, "x-hub-signature-256": "sha256=" + "0" * 64}
    assert httpx.post(url, content=sent.body, headers=forged).status_code == 401
    as_caller = httpx.post(
        url, json={}, headers={"Authorization": f"Bearer {token()}", "Idempotency-Key": "k"}
    )
    assert as_caller.status_code == 401
    assert len(site.behind.seen) == 1
