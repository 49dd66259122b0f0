"""Signing in and out in a browser."""

from playwright.sync_api import Page, expect

from tests.fixtures.console_site import ConsoleSite
from tests.fixtures.desk import Open, scan


def test_signing_in_leads_to_the_page_that_was_wanted(
    page: Page, console_site: ConsoleSite
) -> None:
    page.goto(f"{console_site.url}/console/keys?prefix=a")
    scan(page)
    page.get_by_label("Key of an admin").fill("oka_" + "x" * 43)
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("not the key of an admin")
    page.get_by_label("Key of an admin").fill(console_site.admin_secret)
    page.keyboard.press("Enter")
    page.wait_for_url("**/console/keys?prefix=a")
    (cookie,) = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Lax")
    assert console_site.admin_secret not in page.content()


def test_signing_out_ends_the_session_everywhere(open_page: Open) -> None:
    page = open_page("/keys")
    (cookie,) = page.context.cookies()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("status")).to_contain_text("signed out")
    page.context.add_cookies([cookie])
    page.goto("/console/keys")
    expect(page.get_by_label("Key of an admin")).to_be_visible()


def test_a_page_that_is_watched_asks_to_sign_in_when_its_session_ends(open_page: Open) -> None:
    page = open_page("/keys")
    other = page.context.new_page()
    other.goto("/console")
    other.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Key of an admin")).to_be_visible()


def test_a_script_of_the_same_origin_neither_sees_the_proof_nor_acts(open_page: Open) -> None:
    page = open_page("/keys")
    proof = page.locator("input[name=proof]").get_attribute("value")
    assert proof
    assert proof not in page.evaluate("fetch('/console/keys').then(answer => answer.text())")
    sent = "{method: 'POST', body: new URLSearchParams({proof})}"
    status = f"proof => fetch('/console/sign-out', {sent}).then(answer => answer.status)"
    assert page.evaluate(status, proof) == 403
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("status")).to_contain_text("signed out")
