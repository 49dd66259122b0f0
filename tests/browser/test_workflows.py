"""Workflows in a browser: found, watched while they go on, and gone on with once."""

from playwright.sync_api import Page, expect

from tests.fixtures.console_site import ConsoleSite
from tests.fixtures.desk import Open, scan

HOSTILE = "<img src=x onerror=alert(1)>"


def audited(site: ConsoleSite, action: str, target: str) -> int:
    entries = site.tell("audit", limit=200)["entries"]
    return sum((each["action"], each["target"]) == (action, target) for each in entries)


def waiting(site: ConsoleSite, name: str, key: str, given: object) -> str:
    workflow = site.start(name, key, given)
    site.workflow(workflow, "waiting")
    return workflow


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_a_workflow_is_found_and_read(console_site: ConsoleSite, open_page: Open) -> None:
    workflow = waiting(console_site, "strange", "read-1", HOSTILE)
    page = open_page("/workflows")
    page.get_by_label("Name").fill("strange")
    page.get_by_label("Status").select_option("waiting")
    page.get_by_role("button", name="Find").click()
    page.wait_for_url("**/workflows?*name=strange*")
    scan(page)
    page.get_by_role("link", name=workflow).click()
    expect(page.get_by_role("row", name=f"{HOSTILE} again")).to_contain_text("failed")
    page.locator("#value-1 summary").click()
    expect(page.locator("#value-1 pre")).to_contain_text(HOSTILE)
    assert page.locator("img[src=x]").count() == 0
    scan(page)


def test_a_timeline_goes_on_while_it_is_watched(console_site: ConsoleSite, open_page: Open) -> None:
    workflow = waiting(console_site, "order", "live-1", "live-1")
    page = open_page(f"/workflows/{workflow}")
    expect(page.locator(".badge").first).to_have_text("waiting")
    expect(page.locator("tr.open")).to_have_count(1)
    page.locator("#value-1 summary").click()
    expect(page.locator("#value-1 pre")).to_be_visible()
    console_site.admin.post(f"promises/{workflow}:payment/resolve", json={"value": "paid"})
    expect(page.locator(".badge").first).to_have_text("succeeded")
    expect(page.locator("#step-3")).to_contain_text("receipt")
    expect(page.locator("tr.open")).to_have_count(0)
    expect(page.get_by_role("link", name="Cancel …")).to_have_count(0)
    # What was open is open still.
    expect(page.locator("#value-1 pre")).to_be_visible()
    page.locator("#value-2 summary").click()
    expect(page.locator("#value-2 pre")).to_have_text('"paid"')


def test_a_double_click_cancels_once(console_site: ConsoleSite, open_page: Open) -> None:
    workflow = waiting(console_site, "patient", "twice-1", "x")
    page = open_page(f"/workflows/{workflow}")
    page.get_by_role("link", name="Cancel …").click()
    expect(page.get_by_role("heading", name="Cancel this workflow?")).to_be_visible()
    scan(page)
    page.get_by_role("button", name="Cancel it").dblclick()
    expect(page.get_by_role("status")).to_contain_text("It is cancelled")
    expect(page.locator(".badge").first).to_have_text("cancelled")
    assert audited(console_site, "workflow.cancel", workflow) == 1


def test_leaving_it_changes_nothing(console_site: ConsoleSite, open_page: Open) -> None:
    workflow = waiting(console_site, "patient", "left-1", "x")
    page = open_page(f"/workflows/{workflow}/cancel")
    page.get_by_role("link", name="Leave it").click()
    expect(page.locator(".badge").first).to_have_text("waiting")
    assert audited(console_site, "workflow.cancel", workflow) == 0


def test_one_that_is_paused_is_resumed(console_site: ConsoleSite, open_page: Open) -> None:
    workflow = console_site.start("stubborn", "resume-1", "resume-1")
    console_site.workflow(workflow, "paused")
    page = open_page(f"/workflows/{workflow}")
    expect(page.locator(".standing").first).to_contain_text("nobody answers: resume-1")
    scan(page)
    page.get_by_role("link", name="Resume …").click()
    page.get_by_role("button", name="Resume it").dblclick()
    expect(page.get_by_role("status")).to_contain_text("goes on where it stopped")
    assert audited(console_site, "workflow.resume", workflow) == 1


def test_a_fork_begins_at_the_step_that_is_clicked(
    console_site: ConsoleSite, open_page: Open
) -> None:
    workflow = waiting(console_site, "stairs", "fork-1", 3)
    page = open_page(f"/workflows/{workflow}")
    page.get_by_role("link", name="Fork from step 2").click()
    expect(page.get_by_label("From which step")).to_have_value("2: stair-2")
    scan(page)
    page.get_by_role("button", name="Fork it").dblclick()
    expect(page.get_by_role("status")).to_contain_text("This is the fork")
    expect(page.locator("#step-1")).to_contain_text("taken over")
    (fork,) = console_site.tell(f"workflows/{workflow}")["forks"]
    expect(page.get_by_role("heading", level=1)).to_contain_text(fork)
    page.get_by_role("link", name=workflow).click()
    expect(page.get_by_role("link", name=fork)).to_be_visible()


def test_a_long_journal_is_leafed_through_by_keyboard(
    console_site: ConsoleSite, open_page: Open
) -> None:
    workflow = waiting(console_site, "stairs", "long-1", 120)
    page = open_page(f"/workflows/{workflow}")
    expect(page.locator("#step-120")).to_be_visible()
    page.get_by_role("link", name="Earlier").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Steps 1 to 100 of 120")).to_be_visible()
    expect(page.locator("#step-120")).to_have_count(0)
    page.get_by_role("link", name="Later").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#step-120")).to_be_visible()


def test_it_can_be_read_on_a_phone_and_in_the_dark(
    console_site: ConsoleSite, open_page: Open
) -> None:
    workflow = waiting(console_site, "hopeful", "phone-1", "x" * 300)
    page = open_page("/workflows", phone=True, dark=True)
    assert fits(page)
    scan(page)
    for each in (workflow, waiting(console_site, "strange", "phone-2", HOSTILE * 4)):
        page.goto(f"/console/workflows/{each}")
        assert fits(page)
        scan(page)
