"""Webhooks and deliveries in a browser: from a payment that did not arrive to why."""

import json

import pytest
from playwright.sync_api import Page, expect

from tests.fixtures.console_site import ConsoleSite
from tests.fixtures.desk import Open, scan

HOSTILE = "<img src=x onerror=alert(1)>"


def paid(event: str, charge: str) -> str:
    return json.dumps({"id": event, "type": "paid", "data": {"object": {"id": charge}}})


def fits(page: Page) -> bool:
    """Whether nothing is wider than the screen."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_a_webhook_is_made_tried_and_deleted(console_site: ConsoleSite, open_page: Open) -> None:
    page = open_page("/webhooks")
    scan(page)
    page.get_by_role("link", name="Make one").click()
    scan(page)
    page.get_by_label("Provider", exact=True).fill("stripe")
    page.get_by_label("What follows a delivery").fill('resolve:"stripe:" + body.data.object.id')
    page.get_by_label("Label").fill(HOSTILE)
    page.get_by_role("button", name="Make it").dblclick()
    secret = page.locator("code.secret").first
    expect(secret).to_contain_text("whsec_")
    scan(page)
    assert "whsec_" not in page.url
    secret.click()
    assert page.evaluate("getSelection().toString()") == secret.inner_text()

    page.get_by_role("link", name="See the webhook").click()
    expect(page.get_by_role("heading", name=HOSTILE)).to_be_visible()
    page.get_by_role("link", name="Send a test delivery").click()
    scan(page)
    page.get_by_label("Body").fill(paid("evt_browser", "ch_browser"))
    page.get_by_role("button", name="Send it").dblclick()
    expect(page.get_by_role("heading", name="The test delivery was taken")).to_be_visible()
    scan(page)
    page.get_by_role("link", name="What became of it").click()
    expect(page.locator(".chain")).to_contain_text("not there yet")
    scan(page)

    page.get_by_role("link", name="wh_").first.click()
    expect(page.locator("tbody tr").filter(has_text="evt_browser")).to_have_count(1)
    page.get_by_role("link", name="Delete").click()
    page.get_by_role("button", name="Delete it").dblclick()
    expect(page.get_by_role("status")).to_contain_text("The webhook is deleted")
    entries = console_site.tell("audit", limit=4)["entries"]
    assert [each["action"] for each in entries][:3] == [
        "webhook.delete",
        "webhook.send",
        "webhook.create",
    ]


def test_a_double_click_rotates_once(console_site: ConsoleSite, open_page: Open) -> None:
    page = open_page(f"/webhooks/{console_site.webhook}/rotate")
    scan(page)
    before = len(console_site.tell(f"webhooks/{console_site.webhook}")["secrets"])
    page.get_by_role("button", name="Rotate it").dblclick()
    expect(page.locator("code.secret").first).to_contain_text("whsec_")
    after = console_site.tell(f"webhooks/{console_site.webhook}")["secrets"]
    assert len(after) == before + 1


def test_why_a_payment_did_not_arrive(console_site: ConsoleSite, open_page: Open) -> None:
    workflow = console_site.start("order", "browser-1", "5")
    console_site.workflow(workflow, "waiting")
    # Somebody wrote another charge into the event.
    send = f"webhooks/{console_site.webhook}/send"
    console_site.admin.post(send, json={"body": paid("evt_lost", "ch_6")})
    page = open_page("/deliveries")
    scan(page)
    page.keyboard.press("/")
    page.keyboard.type("evt_lost")
    page.keyboard.press("Enter")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("before anybody asked for it (for the key stripe:ch_6)")
    rows.get_by_role("link").first.click()
    expect(page.locator(".note.warn")).to_contain_text("are not the same text")
    expect(page.locator(".chain > li").last).to_contain_text("Nobody has made it yet.")
    # The right one comes while somebody looks.
    console_site.admin.post(send, json={"body": paid("evt_found", "ch_5")})
    console_site.workflow(workflow, "succeeded")
    page.goto("/console/deliveries?identifier=evt_found")
    page.locator("tbody tr").get_by_role("link").first.click()
    page.locator(".chain").get_by_role("link", name=workflow).last.click()
    expect(page.get_by_role("heading", name="order")).to_be_visible()


def test_a_new_delivery_appears_by_itself(console_site: ConsoleSite, open_page: Open) -> None:
    page = open_page(f"/webhooks/{console_site.webhook}")
    body = paid("evt_live", "ch_live")
    console_site.admin.post(f"webhooks/{console_site.webhook}/send", json={"body": body})
    expect(page.locator("tbody tr").filter(has_text="evt_live")).to_have_count(1)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_pages_can_be_read_on_a_phone(
    console_site: ConsoleSite, open_page: Open, *, dark: bool
) -> None:
    sent = console_site.admin.post(
        f"webhooks/{console_site.webhook}/send",
        json={"body": paid("evt_" + "long" * 40 + str(dark), "ch_" + "x" * 100)},
    ).json()
    page = open_page("/deliveries", phone=True, dark=dark)
    for path in (
        "/deliveries",
        f"/deliveries/{sent['delivery_id']}",
        "/webhooks",
        f"/webhooks/{console_site.webhook}",
        "/webhooks/new",
    ):
        page.goto(f"/console{path}")
        assert fits(page), path
        scan(page)
