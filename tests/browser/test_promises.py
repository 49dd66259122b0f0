"""Promises and events in a browser: settled and published by hand, once."""

from playwright.sync_api import expect

from tests.fixtures.console_site import ConsoleSite
from tests.fixtures.desk import Open, scan


def pending(site: ConsoleSite, key: str) -> str:
    """The id of a workflow that waits for its promise `decision`."""
    workflow = site.start("approval", key, key)
    while site.admin.get(f"promises/{workflow}:decision").status_code == 404:
        pass
    return workflow


def audited(site: ConsoleSite, action: str, target: str) -> int:
    entries = site.tell("audit", limit=200)["entries"]
    return sum((each["action"], each["target"]) == (action, target) for each in entries)


def test_a_workflow_that_waits_is_helped_on(console_site: ConsoleSite, open_page: Open) -> None:
    workflow = pending(console_site, "help-1")
    page = open_page(f"/workflows/{workflow}")
    page.get_by_role("link", name="decision").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("decision")
    scan(page)
    page.get_by_role("link", name="Resolve …").click()
    expect(page.get_by_role("heading", name="Resolve this promise?")).to_be_visible()
    scan(page)
    page.get_by_label("Kind of value").select_option("JSON")
    page.get_by_label("Value", exact=True).fill('{"approved": tru}')
    page.get_by_role("button", name="Resolve it").click()
    expect(page.get_by_role("alert")).to_contain_text("This is not JSON")
    expect(page.get_by_label("Value", exact=True)).to_have_value('{"approved": tru}')
    page.get_by_label("Value", exact=True).fill('{"approved": true}')
    page.get_by_role("button", name="Resolve it").dblclick()
    expect(page.get_by_role("status")).to_contain_text("The promise is resolved")
    expect(page.locator("pre")).to_contain_text('"approved": true')
    scan(page)
    assert audited(console_site, "promise.resolve", f"{workflow}:decision") == 1
    assert console_site.workflow(workflow, "succeeded")["result"] == {"approved": True}


def test_a_promise_is_rejected_by_keyboard(console_site: ConsoleSite, open_page: Open) -> None:
    workflow = pending(console_site, "no-1")
    page = open_page("/promises")
    page.get_by_label("Key").fill("approval:no-1")
    page.keyboard.press("Enter")
    page.wait_for_url("**/promises?*key=approval*")
    expect(page.locator("tbody tr")).to_have_count(1)
    scan(page)
    page.get_by_role("link", name="decision").focus()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Reject …").focus()
    page.keyboard.press("Enter")
    page.get_by_label("Reason", exact=True).focus()
    page.keyboard.type("not this year")
    page.get_by_role("button", name="Reject it").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("The promise is rejected")
    assert "not this year" in str(console_site.workflow(workflow, "failed")["error"])


def test_a_promise_is_seen_to_be_settled(console_site: ConsoleSite, open_page: Open) -> None:
    workflow = pending(console_site, "watched-1")
    page = open_page("/promises")
    page.goto(f"/console/promises/{workflow}%3Adecision")
    expect(page.locator(".badge").first).to_have_text("pending")
    console_site.admin.post(f"promises/{workflow}:decision/resolve", json={"value": "by another"})
    expect(page.locator(".badge").first).to_have_text("resolved")
    expect(page.get_by_role("link", name="Resolve …")).to_have_count(0)
    expect(page.locator("pre")).to_contain_text("by another")


def test_an_event_is_published_once(console_site: ConsoleSite, open_page: Open) -> None:
    workflow = console_site.start("parcel", "parcel-1", 91)
    console_site.workflow(workflow, "waiting")
    page = open_page(f"/workflows/{workflow}")
    page.get_by_role("link", name="Publish it …").click()
    expect(page.get_by_label("Topic")).to_have_value("parcel.scanned")
    page.get_by_label("Data", exact=True).fill('{"number": 91}')
    scan(page)
    page.get_by_role("button", name="Publish it").dblclick()
    expect(page.get_by_role("status")).to_contain_text("somebody was waiting for it")
    scan(page)
    console_site.workflow(workflow, "succeeded")
    assert len(console_site.tell("events", topic="parcel.scanned")["events"]) == 1
    page.get_by_role("link", name="Others of this topic").click()
    page.wait_for_url("**/events?*")
    expect(page.locator("tbody tr")).to_have_count(1)
    scan(page)


def test_they_can_be_read_on_a_phone_and_in_the_dark(
    console_site: ConsoleSite, open_page: Open
) -> None:
    workflow = pending(console_site, "phone-1")
    page = open_page("/promises", phone=True, dark=True)
    for path in (f"/promises/{workflow}%3Adecision", "/events", "/events/publish", "/promises"):
        page.goto(f"/console{path}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        scan(page)
