"""Admins at a real server: an incident from its first alarm to the resend, and who did what."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from openapi_spec_validator import validate

from tests.fixtures.command import Run
from tests.fixtures.served import Serve, Served

CONFIGURATION = """
[server]
workers = 1

[upstreams.orders]
url = "http://127.0.0.1:1"

[[routes]]
path = "/orders"
methods = ["POST"]
upstream = "orders"
policy = "REQUIRED_A"
"""
# What is delivered below has no `ref`.
GITHUB = {"provider": "github", "then": 'event:"build:" + body.ref', "tenant": "acme"}


@pytest.fixture
def served(serve: Serve, tmp_path: Path, oncekey: Run) -> Served:
    (tmp_path / "oncekey.toml").write_text(CONFIGURATION)
    assert oncekey("migrate", "--url", f"sqlite:///{tmp_path}/oncekey.db").returncode == 0
    return serve("--config", "oncekey.toml")


@pytest.fixture
def make(oncekey: Run, tmp_path: Path) -> Any:
    def secret(*words: str) -> str:
        url = f"sqlite:///{tmp_path}/oncekey.db"
        done = oncekey("apikeys", "create", "--url", url, "--json", *words)
        found: str = json.loads(done.stdout)["secret"]
        return found

    return secret


@pytest.fixture
def admin(served: Served, make: Any) -> Iterator[httpx.Client]:
    headers = {"authorization": f"Bearer {make('--admin', '--label', 'on call')}"}
    with httpx.Client(base_url=f"{served.url}/api/admin/", headers=headers, timeout=60) as client:
        yield client


def send(url: str, webhook: Any, body: bytes, name: str) -> httpx.Response:
    """As the provider would."""
    from oncekey.webhooks.delivery import Delivery
    from oncekey.webhooks.providers.registry import providers_of

    place = f"{url}{webhook['path']}"
    delivery = Delivery(place, ((b"x-github-delivery", name.encode()),), body)
    signed = providers_of()["github"].sign(delivery, webhook["secret"], 0.0)
    return httpx.post(place, content=signed.body, headers=list(signed.headers), timeout=60)


def test_a_delivery_that_failed_for_good_is_purged_and_sent_again(
    served: Served, admin: httpx.Client, oncekey: Run, tmp_path: Path
) -> None:
    webhook = admin.post("webhooks", json=GITHUB, headers={"idempotency-key": "make-1"}).json()
    body = json.dumps({"number": 7}).encode()
    first = send(served.url, webhook, body, "d-1")
    again = send(served.url, webhook, body, "d-1")
    assert first.status_code == again.status_code >= 400

    path = f"webhooks/{webhook['id']}"
    mended = admin.patch(path, json={"then": 'event:"build:" + string(body.number)'})
    assert mended.status_code == 200
    (record,) = admin.get("keys", params={"state": "failed", "tenant": "acme"}).json()["keys"]
    assert record["key"] == "github-d-1"
    purge = f"keys/{record['operation_id']}/purge"
    clicks = [admin.post(purge, headers={"idempotency-key": "click"}) for _ in range(2)]
    assert [each.json()["purged"] for each in clicks] == [2, 2]
    assert clicks[1].headers["idempotent-replayed"] == "true"

    # What was mended holds for the next delivery.
    resent = send(served.url, webhook, body, "d-1")
    assert resent.status_code == send(served.url, webhook, body, "d-1").status_code == 200
    assert resent.json()["status"] == "published"

    url = f"sqlite:///{tmp_path}/oncekey.db"
    feed = json.loads(oncekey("audit", "--url", url, "--json").stdout)
    actions = [each["action"] for each in reversed(feed)]
    assert actions[:4] == ["apikey.create", "webhook.create", "webhook.change", "key.purge"]
    assert {each["actor"].partition(":")[0] for each in feed} == {"cli", "admin"}
    assert webhook["secret"] not in json.dumps(feed)


def test_a_webhook_that_is_deleted_takes_nothing_more(served: Served, admin: httpx.Client) -> None:
    for _ in range(3):
        webhook = admin.post("webhooks", json={**GITHUB, "then": "event:provider"}).json()
        assert send(served.url, webhook, b"{}", "d-1").status_code == 200
        path = f"webhooks/{webhook['id']}"
        rotated = admin.post(f"{path}/rotate", json={"overlap": "0s"}).json()
        assert send(served.url, webhook, b"{}", "d-1").status_code == 401
        webhook["secret"] = rotated["secret"]
        assert send(served.url, webhook, b"{}", "d-1").status_code == 200
        assert admin.delete(path).status_code == 200
        assert send(served.url, webhook, b"{}", "d-1").status_code == 404


def test_a_webhook_is_tried_by_the_receiver_of_the_server(
    served: Served, admin: httpx.Client
) -> None:
    webhook = admin.post("webhooks", json={**GITHUB, "then": "event:provider"}).json()
    tried = admin.post(f"webhooks/{webhook['id']}/send").json()
    assert (tried["verdict"], tried["status"]) == ("accepted", 200)
    found = admin.get(f"deliveries/{tried['delivery_id']}").json()
    (lead,) = found["leads_to"]
    assert admin.get(f"events/{lead['id']}").json()["key"] == "github"

    # The service behind is not there.
    behind = admin.post("webhooks", json={**GITHUB, "then": "forward:/orders"}).json()
    tried = admin.post(f"webhooks/{behind['id']}/send").json()
    assert (tried["verdict"], tried["status"]) == ("released", 502)
    found = admin.get(f"deliveries/{tried['delivery_id']}").json()
    assert "start it" in found["advice"]


def test_keys_of_callers_and_of_admins_are_good_for_their_own(
    served: Served, admin: httpx.Client, make: Any
) -> None:
    caller = {"x-api-key": make("--tenant", "acme")}
    assert httpx.get(f"{served.url}/api/admin/keys", headers=caller).status_code == 401
    assert httpx.get(f"{served.url}/api/admin/keys").status_code == 401
    assert admin.get("keys").status_code == 200
    order = {"idempotency-key": "k", "authorization": admin.headers["authorization"]}
    assert httpx.post(f"{served.url}/orders", headers=order).status_code == 401
    # A caller comes as far as the service behind, which is not there.
    known = {**caller, "idempotency-key": "k"}
    assert httpx.post(f"{served.url}/orders", headers=known).status_code == 502


def test_a_revoked_key_is_no_good_at_the_edge_either(served: Served, admin: httpx.Client) -> None:
    made = admin.post("apikeys", json={"tenant": "acme"}).json()
    headers = {"x-api-key": made["secret"], "idempotency-key": "k"}
    assert httpx.post(f"{served.url}/orders", headers=headers).status_code == 502
    assert admin.post(f"apikeys/{made['id']}/revoke").status_code == 200
    while httpx.post(f"{served.url}/orders", headers=headers).status_code != 401:
        continue


def test_the_edge_serves_its_document(served: Served, admin: httpx.Client) -> None:
    document = httpx.get(f"{served.url}/edge/openapi.json").json()
    validate(document)
    order = document["paths"]["/orders"]["post"]
    assert order["x-idempotency-policy"] == "REQUIRED_A"
    assert order["x-idempotency-retention"] == {"class": "interactive", "seconds": 86400}
    validate(admin.get("openapi.json").json())


def test_without_admins_there_is_nothing(serve: Serve, tmp_path: Path, make: Any) -> None:
    (tmp_path / "oncekey.toml").write_text(f"{CONFIGURATION}\n[admin]\nenabled = false\n")
    served = serve("--config", "oncekey.toml")
    headers = {"authorization": f"Bearer {make('--admin')}"}
    assert httpx.get(f"{served.url}/api/admin/keys", headers=headers).status_code == 404
