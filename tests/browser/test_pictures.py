"""The pictures in the documentation: `make pictures` writes them there, other runs only look."""

import os
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.fixtures.console_site import ConsoleSite
from tests.fixtures.console_story import Story
from tests.fixtures.desk import Open, scan

WANTED = os.environ.get("ONCEKEY_PICTURES")
# A chart wants some time to show; a test does not.
_ROUNDS = 25 if WANTED else 1


@pytest.fixture(scope="module")
def story(console_site: ConsoleSite) -> Story:
    told = Story(console_site)
    for number in range(_ROUNDS):
        told.trade(8 + number % 5)
        wait_for_a_sample(console_site)
    return told


def wait_for_a_sample(console_site: ConsoleSite) -> None:
    before = console_site.tell("pulse")["samples"]
    while console_site.tell("pulse")["samples"] == before:
        continue


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(WANTED) if WANTED else tmp_path_factory.mktemp("pictures")


def test_the_overview(
    console_site: ConsoleSite, open_page: Open, story: Story, folder: Path
) -> None:
    page = open_page()
    story.trade(12)
    expect(page.locator("figure", has_text="Requests")).not_to_contain_text("max 0/s")
    expect(page.get_by_role("heading", name="Refused or failed deliveries")).to_be_visible()
    scan(page)
    page.screenshot(path=folder / "console-overview.png")


def test_a_delivery(console_site: ConsoleSite, open_page: Open, story: Story, folder: Path) -> None:
    (first, *_) = console_site.tell("deliveries", identifier="evt_1043")["deliveries"]
    page = open_page(f"/deliveries/{first['id']}")
    expect(page.get_by_text("succeeded").first).to_be_visible()
    scan(page)
    page.screenshot(path=folder / "console-delivery.png", full_page=True)


def test_a_workflow(open_page: Open, story: Story, folder: Path) -> None:
    page = open_page(f"/workflows/{story.waiting}")
    expect(page.get_by_text("stripe:ch_1042").first).to_be_visible()
    scan(page)
    page.screenshot(path=folder / "console-workflow.png")


def test_in_the_dark_on_a_phone(open_page: Open, story: Story, folder: Path) -> None:
    page = open_page(f"/workflows/{story.paused}", dark=True, phone=True)
    scan(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.screenshot(path=folder / "console-phone.png")
