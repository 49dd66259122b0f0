"""Webhooks in the console: seen, made, changed, given secrets, tried and deleted, each once."""

import re
from typing import Any

import pytest
from markupsafe import escape

from tests.fixtures.console_site import ConsoleSite, Visitor

HOSTILE = "<script>alert(1)</script>\"'&"
STRIPE = {"provider": "stripe", "then": 'resolve:"stripe:" + body.data.object.id'}
NOWHERE = "wh_" + "a" * 30
_SECRET = re.compile(r"whsec_[A-Za-z0-9+/=_-]{20,}")


def make(site: ConsoleSite, **more: Any) -> Any:
    answer = site.admin.post("webhooks", json={**STRIPE, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()


def ids_of(site: ConsoleSite, tenant: str) -> list[str]:
    return [each["id"] for each in site.tell("webhooks", tenant=tenant)["webhooks"]]


# -- seen --------------------------------------------------------------------------------------


def test_webhooks_are_listed_with_what_follows(console_site: ConsoleSite, visitor: Visitor) -> None:
    made = make(console_site, tenant="listed", project="shop", label="the shop")
    page = visitor.see("/webhooks", tenant="listed")
    assert f'href="/console/webhooks/{made["id"]}">the shop</a>' in page
    assert escape(STRIPE["then"]) in page
    assert page.count('<td data-label="Webhook">') == 1


def test_one_shows_its_address_and_when_its_secrets_are_good(
    console_site: ConsoleSite, visitor: Visitor
) -> None:
    made = make(console_site, tenant="shown")
    page = visitor.see(f"/webhooks/{made['id']}")
    assert made["path"] in page
    assert "it is rotated" in page
    assert "Nothing was delivered" in page
    assert made["secret"] not in page


@pytest.mark.parametrize("label", [HOSTILE, "   "])
def test_labels_are_shown_as_text(console_site: ConsoleSite, visitor: Visitor, label: str) -> None:
    made = make(console_site, tenant="hostile", label=label)
    for path in ("/webhooks?tenant=hostile", *(f"/webhooks/{made['id']}{x}" for x in ACTIONS)):
        page = visitor.see(path)
        assert "<script>alert" not in page
        assert escape(label.strip() or made["id"]) in page


def test_a_filter_that_cannot_be_used_is_told_and_kept(visitor: Visitor) -> None:
    page = visitor.see("/webhooks", 400, tenant=HOSTILE)
    assert 'role="alert"' in page
    assert f'value="{escape(HOSTILE)}"' in page


ACTIONS = ("", "/change", "/rotate", "/send", "/delete")


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("id", [NOWHERE, "wh_1", "..", HOSTILE.replace("/", "")])
def test_what_is_not_there_is_not_found(visitor: Visitor, action: str, id: str) -> None:  # noqa: A002
    answer = visitor.client.get(f"/console/webhooks/{id.replace('..', '%2e%2e')}{action}")
    assert answer.status_code == 404
    assert "<script>alert" not in answer.text


# -- made --------------------------------------------------------------------------------------


def test_a_secret_that_is_made_is_on_one_page_only(
    console_site: ConsoleSite, visitor: Visitor
) -> None:
    form = {**visitor.fields("/webhooks/new"), **STRIPE, "tenant": "once", "label": "new"}
    first, second = visitor.send("/webhooks/new", form), visitor.send("/webhooks/new", form)
    (secret,) = _SECRET.findall(first.text)
    assert (first.status_code, second.status_code) == (200, 200)
    assert first.headers["cache-control"] == "no-store"
    assert secret not in second.text
    assert "it was done then, and once" in second.text
    (made,) = ids_of(console_site, "once")
    (entry,) = console_site.tell("audit", tenant="once")["entries"]
    operation = console_site.operation(form["key"])
    for path in (
        "/webhooks?tenant=once",
        f"/webhooks/{made}",
        f"/webhooks/{made}/rotate",
        "/audit?tenant=once",
        f"/keys/{operation}",
    ):
        assert secret not in visitor.see(path)
    assert entry["action"] == "webhook.create"


def test_a_secret_that_is_given_is_never_sent_back(
    console_site: ConsoleSite, visitor: Visitor
) -> None:
    given = {"secret": "whsec_" + "a1" * 16, "tenant": "given"}
    refused = visitor.act("/webhooks/new", **{**STRIPE, **given, "then": "nothing"})
    made = visitor.act("/webhooks/new", **STRIPE, **given)
    assert (refused.status_code, made.status_code) == (400, 200)
    assert given["secret"] not in refused.text + made.text
    assert len(ids_of(console_site, "given")) == 1


@pytest.mark.parametrize(
    "field, value",
    [
        ("provider", "strype"),
        ("then", "resolve:body.("),
        ("tenant", HOSTILE),
        ("label", "x" * 201),
        ("repeats", HOSTILE),
    ],
)
def test_what_cannot_be_used_makes_nothing_and_stays_written(
    console_site: ConsoleSite, visitor: Visitor, field: str, value: str
) -> None:
    answer = visitor.act("/webhooks/new", **{**STRIPE, "tenant": "refused", field: value})
    assert answer.status_code == 400
    assert 'role="alert"' in answer.text
    assert "Nothing was done" in answer.text
    assert field == "repeats" or f'value="{escape(value)}"' in answer.text
    assert "<script>alert" not in answer.text
    assert ids_of(console_site, "refused") == []


# -- changed -----------------------------------------------------------------------------------


def test_the_next_secret_is_shown_once_and_the_last_stays_good(
    console_site: ConsoleSite, visitor: Visitor
) -> None:
    made = make(console_site, tenant="rotated")
    path = f"/webhooks/{made['id']}"
    form = {**visitor.fields(f"{path}/rotate"), "overlap": "2h"}
    first, second = (visitor.send(f"{path}/rotate", form) for _ in range(2))
    (secret,) = _SECRET.findall(first.text)
    assert secret != made["secret"]
    assert _SECRET.findall(second.text) == []
    kept = console_site.tell(f"webhooks/{made['id']}")["secrets"]
    assert [each["until"] is None for each in kept] == [True, False]
    page = visitor.see(path)
    assert page.count('data-label="Good until"') == 2
    assert _SECRET.findall(page) == []


def test_an_overlap_that_is_no_time_changes_nothing(
    console_site: ConsoleSite, visitor: Visitor
) -> None:
    made = make(console_site, tenant="overlap")
    answer = visitor.act(f"/webhooks/{made['id']}/rotate", overlap="a while")
    assert answer.status_code == 400
    assert 'value="a while"' in answer.text
    assert len(console_site.tell(f"webhooks/{made['id']}")["secrets"]) == 1


def test_what_follows_and_the_label_are_changed_once(
    console_site: ConsoleSite, visitor: Visitor
) -> None:
    made = make(console_site, tenant="changed", label="before")
    path = f"/webhooks/{made['id']}/change"
    form = {**visitor.fields(path), "then": "workflow:order", "label": "", "repeats": "allow"}
    first, second = visitor.send(path, form), visitor.send(path, form)
    assert first.headers["location"] == f"/console/webhooks/{made['id']}?said=webhook-changed"
    assert second.headers["location"].endswith("&again=1")
    shown = console_site.tell(f"webhooks/{made['id']}")
    assert (shown["then"], shown["label"], shown["repeats"]) == ("workflow:order", "", "allow")
    actions = [each["action"] for each in console_site.tell("audit", tenant="changed")["entries"]]
    assert actions == ["webhook.change", "webhook.create"]
    assert "The webhook is changed" in visitor.see(
        first.headers["location"].removeprefix("/console")
    )


def test_what_cannot_follow_stays_written(console_site: ConsoleSite, visitor: Visitor) -> None:
    made = make(console_site, tenant="kept")
    path = f"/webhooks/{made['id']}/change"
    answer = visitor.act(path, then=f"resolve:{HOSTILE}", label="new", repeats="allow")
    assert answer.status_code == 400
    assert escape(f"resolve:{HOSTILE}") in answer.text
    assert console_site.tell(f"webhooks/{made['id']}")["then"] == STRIPE["then"]


def test_a_webhook_is_deleted_once(console_site: ConsoleSite, visitor: Visitor) -> None:
    made = make(console_site, tenant="deleted")
    path = f"/webhooks/{made['id']}"
    form = visitor.fields(f"{path}/delete")
    first, second = (visitor.send(f"{path}/delete", form) for _ in range(2))
    assert first.headers["location"] == "/console/webhooks?said=webhook-deleted"
    assert second.headers["location"].endswith("&again=1")
    visitor.see(path, 404)
    assert ids_of(console_site, "deleted") == []
    feed = console_site.tell("audit", tenant="deleted")["entries"]
    assert [each["action"] for each in feed] == ["webhook.delete", "webhook.create"]


# -- tried -------------------------------------------------------------------------------------


def test_a_test_delivery_tells_its_verdict_and_leads_to_its_key(
    console_site: ConsoleSite, visitor: Visitor
) -> None:
    made = make(console_site, tenant="tried")
    path = f"/webhooks/{made['id']}"
    form = {**visitor.fields(f"{path}/send"), "type": "charge.succeeded"}
    first, second = (visitor.send(f"{path}/send", form) for _ in range(2))
    assert first.status_code == second.status_code == 200
    (logged,) = console_site.tell(f"webhooks/{made['id']}/deliveries")["deliveries"]
    for page in (first.text, second.text):
        assert "accepted" in page
        assert f"/console/deliveries/{logged['id']}" in page
        assert f"/console/keys/{logged['operation_id']}" in page
    assert "it was done then, and once" in second.text
    assert logged["identifier"] in visitor.see(path)


def test_a_body_by_hand_is_shown_as_text(console_site: ConsoleSite, visitor: Visitor) -> None:
    made = make(console_site, tenant="hand")
    body = '{"id": "evt_<b>1</b>", "data": {"object": {"id": "<img src=x>"}}}'
    answer = visitor.act(f"/webhooks/{made['id']}/send", body=body)
    assert answer.status_code == 200
    assert "evt_&lt;b&gt;1&lt;/b&gt;" in answer.text
    page = visitor.see(f"/webhooks/{made['id']}")
    assert "evt_&lt;b&gt;1&lt;/b&gt;" in page
    assert "<b>1</b>" not in answer.text + page
    assert "<img src=x>" not in answer.text + page


def test_a_delivery_without_an_identifier_says_so(
    console_site: ConsoleSite, visitor: Visitor
) -> None:
    made = make(console_site, tenant="nameless")
    answer = visitor.act(f"/webhooks/{made['id']}/send", body="{}")
    assert "refused" in answer.text
    assert "The delivery has no id." in answer.text
    assert "It was not believed, so nothing was done." in answer.text


def test_a_body_and_a_type_are_not_both_sent(console_site: ConsoleSite, visitor: Visitor) -> None:
    made = make(console_site, tenant="both")
    answer = visitor.act(f"/webhooks/{made['id']}/send", body='{"a": 1}', type="paid")
    assert answer.status_code == 400
    assert escape('{"a": 1}') in answer.text
    assert 'value="paid"' in answer.text
    assert console_site.tell(f"webhooks/{made['id']}/deliveries")["deliveries"] == []
