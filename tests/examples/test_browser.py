"""The example of a page with one button: whatever is done with it, there is one order."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.fixtures.console import Reader, commands_of
from tests.fixtures.desk import scan
from tests.fixtures.served import ROOT, Serve, Served

EXAMPLE = ROOT / "examples" / "browser"


@pytest.fixture
def served(serve: Serve) -> Served:
    return serve("--config", str(EXAMPLE / "oncekey.toml"))


def orders(served: Served, folder: Path) -> list[dict[str, object]]:
    """As the README looks at them."""
    serving, look = commands_of(EXAMPLE / "README.md")
    assert "examples/browser/oncekey.toml" in serving.line
    (seen,) = Reader(folder, served.url).type(look.line)
    found: list[dict[str, object]] = json.loads(seen.output)
    return found


def test_a_double_click_orders_once(served: Served, page: Page, tmp_path: Path) -> None:
    page.goto(served.url)
    scan(page)
    page.get_by_role("button", name="Buy tea").dblclick()
    expect(page.get_by_role("status")).to_contain_text("Order 1 was placed already.")
    assert orders(served, tmp_path) == [{"id": 1, "item": "tea"}]

    # The answer is known, and nobody is asked.
    page.context.set_offline(True)
    page.get_by_role("button", name="Buy tea").click()
    expect(page.get_by_role("status")).to_contain_text("Order 1 was placed already.")


def test_another_cart_is_another_order(served: Served, page: Page, tmp_path: Path) -> None:
    missing: list[str] = []
    page.on("response", lambda got: missing.append(got.url) if got.status == 404 else None)
    page.goto(served.url)
    status = page.get_by_role("status")
    page.get_by_role("button", name="Buy tea").click()
    expect(status).to_contain_text("Order 1 is placed.")
    page.get_by_role("button", name="Take an empty cart").click()
    # The cart outlives the page.
    page.reload()
    for told in ("Order 2 is placed.", "Order 2 was placed already."):
        page.get_by_role("button", name="Buy tea").click()
        expect(status).to_contain_text(told)
    assert [each["id"] for each in orders(served, tmp_path)] == [1, 2]
    assert missing == []


@pytest.mark.parametrize("how", ["reloaded", "closed"])
def test_a_page_that_goes_away_orders_once(
    served: Served, page: Page, tmp_path: Path, how: str
) -> None:
    context = page.context
    page.goto(served.url)
    page.get_by_role("button", name="Buy tea").click()
    while not orders(served, tmp_path):
        pass
    if how == "closed":
        page.close()
        page = context.new_page()
    page.goto(served.url)
    expect(page.get_by_role("status")).to_contain_text("Order 1 was placed already.")
    assert orders(served, tmp_path) == [{"id": 1, "item": "tea"}]
