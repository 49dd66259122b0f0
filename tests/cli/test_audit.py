"""`oncekey audit`: everything commands change is in it, with who did it."""

import getpass
import json
from typing import Any

import pytest

from tests.fixtures.command import Run
from tests.fixtures.shelf import Shelf
from tests.fixtures.workshop import Workshop

ME = f"cli:{getpass.getuser()}"


def newest(shop: Workshop) -> tuple[str, str, str | None, dict[str, Any]]:
    (entry,) = shop.json("audit", "--limit", "1")
    assert entry["actor"] == ME
    return entry["action"], entry["target"], entry["tenant"], entry["details"]


def test_without_entries_it_says_so(oncekey: Run, shelf: Shelf) -> None:
    assert oncekey("audit").stdout == "no entries\n"
    assert json.loads(oncekey("audit", "--json").stdout) == []


def test_what_webhooks_go_through(shop: Workshop) -> None:
    made = shop.json("webhooks", "create", "--provider", "stripe", "--tenant", "acme")
    secret = made["secret"]
    action, target, tenant, details = newest(shop)
    assert (action, target, tenant) == ("webhook.create", made["id"], "acme")
    assert (details["provider"], details["then"]) == ("stripe", "event:provider")

    shop.told("webhooks", "rotate", made["id"], "--secret", "a-given-secret-of-mine")
    assert newest(shop) == ("webhook.rotate", made["id"], "acme", {"overlap": 86400.0})
    shop.told("webhooks", "send", made["id"], "--to", shop.url)
    assert newest(shop) == ("webhook.send", made["id"], "acme", {"status": 200})
    shop.told("webhooks", "delete", made["id"])
    assert newest(shop)[:3] == ("webhook.delete", made["id"], "acme")

    feed = shop.told("audit", "--json") + shop.told("audit")
    assert secret not in feed
    assert "a-given-secret-of-mine" not in feed


def test_what_api_keys_go_through(shop: Workshop) -> None:
    made = shop.json("apikeys", "create", "--tenant", "acme", "--label", "CI")
    action, target, tenant, details = newest(shop)
    assert (action, target, tenant) == ("apikey.create", made["id"], "acme")
    assert (details["role"], details["label"]) == ("caller", "CI")
    assert made["secret"] not in json.dumps(details)
    shop.told("apikeys", "revoke", made["id"])
    assert newest(shop)[:3] == ("apikey.revoke", made["id"], "acme")

    admin = shop.json("apikeys", "create", "--admin", "--expires-in", "1d")
    action, target, tenant, details = newest(shop)
    assert (action, target, tenant) == ("apikey.create", admin["id"], None)
    assert details["expires_at"] == admin["expires_at"]


def test_what_durable_work_goes_through(shop: Workshop) -> None:
    first = shop.start("approval", "x", "--key", "audit-1")
    assert newest(shop) == (
        "workflow.start", first, "default", {"name": "approval", "key": "audit-1"},
    )  # fmt: skip
    shop.until(first, "waiting")
    shop.told("promises", "resolve", f"id:{first}:decision", "--value", "1")
    assert newest(shop) == ("promise.resolve", f"{first}:decision", "default", {})
    second = shop.start("approval", "x")
    shop.told("workflows", "cancel", second)
    assert newest(shop) == ("workflow.cancel", second, "default", {})
    published = shop.json("events", "publish", "parcel:lost")
    assert newest(shop) == (
        "event.publish", published["event_id"], "default", {"key": "parcel:lost"},
    )  # fmt: skip


def test_what_changes_nothing_is_not_in_it(shop: Workshop) -> None:
    first = shop.start("echo", 1, "--key", "audit-2")
    before = shop.json("audit", "--limit", "1")
    shop.start("echo", 1, "--key", "audit-2")
    shop.told("workflows", "show", first)
    shop.told("webhooks", "list")
    assert shop("webhooks", "delete", f"wh_{'a' * 30}").returncode == 1
    assert shop.json("audit", "--limit", "1") == before


def test_a_token_is_never_in_it(shop: Workshop) -> None:
    done = shop("promises", "resolve", "key:not-there", "--park", "--value", "1")
    assert done.returncode == 0
    assert newest(shop) == ("promise.resolve", "a promise to come", "default", {})


def test_keys_and_retention(oncekey: Run, shelf: Shelf) -> None:
    record = shelf.settle("k-1")
    assert oncekey("keys", "purge", "k-1", "--yes").returncode == 0
    assert oncekey("retention", "set", "webhook", "3d").returncode == 0

    newer, older = json.loads(oncekey("audit", "--json").stdout)
    assert (newer["action"], newer["target"], newer["details"]) == (
        "retention.set", "webhook", {"seconds": 259200.0},
    )  # fmt: skip
    assert (older["action"], older["target"]) == ("key.purge", record.operation_id)
    assert older["tenant"] == "default"
    assert older["details"]["key"] == "k-1"


def test_the_feed_is_paged_and_by_tenant(oncekey: Run, shelf: Shelf) -> None:
    for tenant in ("acme", "other", "acme"):
        assert oncekey("apikeys", "create", "--tenant", tenant).returncode == 0

    first = oncekey("audit", "--limit", "2").stdout.splitlines()
    assert first[0].split() == ["AT", "ACTOR", "ACTION", "TARGET", "TENANT", "DETAILS"]
    rest = oncekey(*first[-1].split()[2:]).stdout.splitlines()
    assert [line.split()[5] for line in [*first[1:3], *rest[1:]]] == ["acme", "other", "acme"]
    assert len(json.loads(oncekey("audit", "--tenant", "acme", "--json").stdout)) == 2


@pytest.mark.parametrize("words, code", [(["--before", "x"], 2), (["--tenant", "a b"], 1)])
def test_mistakes(oncekey: Run, shelf: Shelf, words: list[str], code: int) -> None:
    done = oncekey("audit", *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert "Traceback" not in done.stderr
