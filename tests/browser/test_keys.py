"""Keys in a browser: found, seen, forgotten once."""

import sqlite3
from contextlib import closing

from playwright.sync_api import Page, expect

from tests.fixtures.console_site import ConsoleSite
from tests.fixtures.desk import Open, scan


def test_a_key_is_found_and_seen(console_site: ConsoleSite, open_page: Open) -> None:
    console_site.post("/orders", "seen-1", {"item": "tea"})
    page = open_page("/keys")
    page.get_by_label("Key begins with").fill("seen-")
    page.get_by_role("button", name="Find").click()
    scan(page)
    page.get_by_role("link", name="seen-1").click()
    expect(page.get_by_role("heading", name="seen-1")).to_be_visible()
    expect(page.locator("pre")).to_contain_text('"item": "tea"')
    scan(page)


def test_a_double_click_forgets_once(console_site: ConsoleSite, open_page: Open) -> None:
    console_site.post("/orders", "twice-1", {"item": "tea"})
    page = open_page(f"/keys/{console_site.operation('twice-1')}")
    page.get_by_role("link", name="Forget this key").click()
    scan(page)
    page.get_by_role("button", name="Forget it").dblclick()
    expect(page.get_by_role("status")).to_contain_text("is forgotten")
    entries = console_site.tell("audit")["entries"]
    purges = [each for each in entries if each["details"].get("key") == "twice-1"]
    assert [each["action"] for each in purges] == ["key.purge"]
    assert console_site.tell("keys", prefix="twice-1")["keys"] == []


def test_leaving_it_changes_nothing(console_site: ConsoleSite, open_page: Open) -> None:
    console_site.post("/orders", "left-1", {"item": "tea"})
    operation = console_site.operation("left-1")
    page = open_page(f"/keys/{operation}/purge")
    page.get_by_role("link", name="Leave it").click()
    expect(page.get_by_role("heading", name="left-1")).to_be_visible()
    assert console_site.operation("left-1") == operation


def test_a_new_key_appears_by_itself(console_site: ConsoleSite, open_page: Open) -> None:
    page = open_page("/keys")
    console_site.post("/orders", "live-1", {"item": "tea"})
    expect(page.get_by_role("link", name="live-1")).to_be_visible()


def test_everything_is_reached_by_keyboard(console_site: ConsoleSite, open_page: Open) -> None:
    console_site.post("/orders", "keyboard-1", {"item": "tea"})
    page: Page = open_page("/keys")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "id"
    page.get_by_label("Key begins with").focus()
    page.keyboard.type("keyboard-1")
    page.keyboard.press("Enter")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("link", name="keyboard-1").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="keyboard-1")).to_be_visible()


def test_it_can_be_read_on_a_phone_and_in_the_dark(
    console_site: ConsoleSite, open_page: Open
) -> None:
    console_site.post("/orders", "phone-1", {"item": "tea"})
    page = open_page("/keys", phone=True, dark=True)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    scan(page)


def test_what_lies_far_back_is_found_by_looking_on(
    console_site: ConsoleSite, open_page: Open
) -> None:
    """One page looks at a bounded number of keys, and goes on by itself where none fits."""
    console_site.post("/orders", "buried-1", {"item": "tea"})
    (kept,) = console_site.tell("keys", prefix="buried-1")["keys"]
    with closing(sqlite3.connect(console_site.database, timeout=60)) as database:
        database.execute(_BURY, {"after": int(kept["operation_id"][3:], 16), "many": 230_000})
        database.commit()
    page = open_page("/keys")
    page.get_by_label("Key", exact=True).fill("buried-1")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_role("link", name="buried-1")).to_be_visible()
    scan(page)
    # What was fetched has no proof in it; the form around it keeps its own.
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("status")).to_contain_text("signed out")


# As many settled keys as it takes, each newer than the one that is looked for.
_BURY = """
INSERT INTO oncekey_claims (
    id, digest, namespace, endpoint, key, fingerprint, owner, fence,
    request_id, retention, created_at, expires_at
)
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :many)
SELECT
    :after + n, randomblob(16), 't-default:_tenant:client:anonymous', 'POST /orders',
    'above-' || n, zeroblob(16), 0, 1, '', 'interactive', 0, 9000000000000
FROM numbers
"""
