"""Schedules, retention, API keys and the audit feed in a browser."""

import pytest
from playwright.sync_api import expect

from tests.fixtures.console_site import ConsoleSite
from tests.fixtures.desk import Open, scan

HOSTILE = "<img src=x onerror=alert(1)>"


def test_a_schedule_is_paused_and_resumed(console_site: ConsoleSite, open_page: Open) -> None:
    page = open_page("/schedules")
    scan(page)
    page.get_by_role("link", name="nightly").click()
    scan(page)
    page.get_by_role("link", name="Pause").click()
    scan(page)
    page.get_by_role("button", name="Pause it").dblclick()
    expect(page.get_by_role("status")).to_contain_text("is paused")
    page.get_by_role("link", name="Resume").click()
    page.get_by_role("button", name="Resume it").dblclick()
    expect(page.get_by_role("status")).to_contain_text("goes on")
    entries = console_site.tell("audit", target="nightly")["entries"]
    assert [each["action"] for each in entries] == ["schedule.resume", "schedule.pause"]


def test_retention_is_shortened_only_on_purpose(console_site: ConsoleSite, open_page: Open) -> None:
    page = open_page("/retention")
    scan(page)
    page.get_by_role("link", name="Set financial").click()
    scan(page)
    page.get_by_label("Kept for").fill("2d")
    page.get_by_role("button", name="Set it").click()
    expect(page.get_by_role("alert")).to_contain_text("2d is shorter than what is in force")
    scan(page)
    expect(page.get_by_label("Kept for")).to_have_value("2d")
    page.get_by_label("Also when that is shorter").check()
    page.get_by_role("button", name="Set it").dblclick()
    expect(page.get_by_role("status")).to_contain_text("It is set")
    expect(page.locator("tbody tr").filter(has_text="financial")).to_contain_text("2d")
    assert len(console_site.tell("audit", target="financial")["entries"]) == 1


def test_an_api_key_is_made_and_revoked(console_site: ConsoleSite, open_page: Open) -> None:
    page = open_page("/apikeys")
    scan(page)
    page.get_by_role("link", name="Make one").click()
    scan(page)
    page.get_by_label("Label").fill(HOSTILE)
    page.get_by_label("Tenant").fill("browser")
    page.get_by_role("button", name="Make it").dblclick()
    expect(page.locator("code.secret")).to_contain_text("ok_")
    scan(page)
    secret = page.locator("code.secret").inner_text()
    page.get_by_role("link", name="See the key").click()
    scan(page)
    assert secret not in page.content()
    page.goto("/console/apikeys?tenant=browser")
    page.locator("tbody").get_by_role("link").click()
    page.get_by_role("link", name="Revoke it").click()
    scan(page)
    page.get_by_role("button", name="Revoke it").dblclick()
    expect(page.get_by_role("status")).to_contain_text("is revoked")
    (made,) = console_site.tell("apikeys", tenant="browser")["api_keys"]
    assert (made["state"], made["label"]) == ("revoked", HOSTILE)


def test_the_audit_feed_leads_to_what_was_done(console_site: ConsoleSite, open_page: Open) -> None:
    console_site.admin.put("retention/interactive", json={"kept": "36h"})
    page = open_page("/audit")
    scan(page)
    page.get_by_label("Did").fill("retention.set")
    page.keyboard.press("Enter")
    row = page.locator("tbody tr").filter(has_text="interactive").first
    row.get_by_role("link", name="interactive").click()
    expect(page.get_by_role("heading", name="interactive")).to_be_visible()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_pages_can_be_read_on_a_phone(
    console_site: ConsoleSite, open_page: Open, *, dark: bool
) -> None:
    label = "a label without an end " * 8
    made = console_site.admin.post("apikeys", json={"label": label, "tenant": "phone"}).json()
    page = open_page("/audit", phone=True, dark=dark)
    for path in (
        "/audit",
        "/apikeys",
        f"/apikeys/{made['id']}",
        "/apikeys/new",
        "/schedules",
        "/schedules/nightly",
        "/retention",
        "/retention/webhook",
    ):
        page.goto(f"/console{path}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        scan(page)
