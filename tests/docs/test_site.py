"""The documentation as a site: whole, reachable, read as on GitHub, and without any other host."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from markdown_it import MarkdownIt
from playwright.sync_api import Page, Route

from oncekey.wire.problem import codes
from tests.fixtures.documentation import HOME, HtmlPage, Site, documentation, documentation_url
from tests.fixtures.pages import DOCS

__all__ = ["documentation", "documentation_url"]

SVG = "{http://www.w3.org/2000/svg}"
GRAVE = {"serious", "critical"}
# The theme's own search has no name as long as it is closed.
THEIRS = {"aria-dialog-name"}
PAGES = sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))


def address_of(page: str) -> str:
    """Of a page that is called so in docs/."""
    folder = re.sub(r"(^|/)(index|README)$", "", page.removesuffix(".md"))
    return f"{HOME}{folder}/" if folder else HOME


def test_links_pictures_scripts_and_sheets_are_there(documentation: Site) -> None:
    missing = [
        (page, address.url)
        for page, html in documentation.pages.items()
        for address in html.addresses
        if documentation.misses(page, address.url)
    ]
    assert missing == []


def test_nothing_is_loaded_from_another_host(documentation: Site) -> None:
    for page, html in documentation.pages.items():
        loaded = [urljoin(page, each.url) for each in html.addresses if each.is_loaded]
        assert [url for url in loaded if not url.startswith((HOME, "data:"))] == []
    for sheet in documentation.folder.rglob("*.css"):
        assert re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", sheet.read_text()) == []


def test_every_page_is_in_the_navigation(documentation: Site) -> None:
    found = documentation.navigation_of(HOME)
    assert [page for page in PAGES if address_of(page) not in found | {HOME}] == []


def test_every_example_is_in_the_navigation(documentation: Site) -> None:
    found = documentation.navigation_of(f"{HOME}examples/")
    folders = [readme.parent.name for readme in (DOCS.parent / "examples").glob("*/README.md")]
    assert folders
    assert [name for name in folders if f"{HOME}examples/{name}/" not in found] == []


@pytest.mark.parametrize("folder", ["examples/", "problems/", "decisions/"])
def test_a_folder_has_an_index_that_leads_to_each_page_of_it(
    documentation: Site, folder: str
) -> None:
    index = f"{HOME}{folder}"
    assert index in documentation.navigation_of(HOME)
    links = {
        urljoin(index, each.url)
        for each in documentation.pages[index].addresses
        if not each.in_navigation
    }
    inside = {page for page in documentation.pages if page.startswith(index)} - {index}
    assert inside
    assert inside - links == set()


def test_who_is_lost_is_led_on(documentation: Site) -> None:
    lost = documentation.pages[f"{HOME}404.html"]
    links = {urljoin(HOME, each.url) for each in lost.addresses if not each.in_navigation}
    assert {f"{HOME}{page}/" for page in ("quickstart", "problems", "examples")} <= links


def test_every_problem_is_where_answers_say(documentation: Site) -> None:
    errors = documentation.pages[f"{HOME}reference/errors/"]
    linked = {urljoin(f"{HOME}reference/errors/", each.url) for each in errors.addresses}
    for code in codes():
        assert f"{HOME}problems/{code}/" in documentation.pages
        assert f"{HOME}problems/{code}/" in linked


def test_what_lies_beside_the_pages_comes_along(documentation: Site) -> None:
    """Readmes as pages, with links that lead back; other files as text."""
    example = documentation.pages[f"{HOME}examples/edge/"]
    links = {urljoin(f"{HOME}examples/edge/", each.url) for each in example.addresses}
    assert f"{HOME}how-to/edge/" in links
    assert f"{HOME}examples/edge/oncekey.toml.txt" in links
    assert (documentation.folder / "src/oncekey/api/grpc/oncekey.proto.txt").is_file()
    assert f"{HOME}CONTRIBUTING/" in documentation.pages


def test_scripts_of_the_documentation_stay_at_home(documentation: Site) -> None:
    assert [*documentation.folder.rglob("*.py"), *documentation.folder.rglob("python.toml")] == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_reads_as_on_github(documentation: Site, name: str, tmp_path: Path) -> None:
    """Lists, tables and code are the same to two readers of Markdown who differ in much."""
    rendered = tmp_path / "page.html"
    text = (
        MarkdownIt("commonmark", {"html": True}).enable("table").render((DOCS / name).read_text())
    )
    rendered.write_text(f"<article>{text}</article>")
    assert documentation.pages[address_of(name)].counts == HtmlPage(rendered).counts


def test_every_drawing_says_what_it_shows(documentation: Site) -> None:
    drawings = [*(documentation.folder / "pictures").glob("*.svg")]
    drawings += (documentation.folder / "theme").glob("*.svg")
    assert len(drawings) > 20
    for drawing in drawings:
        root = ET.parse(drawing).getroot()
        assert root.findtext(f"{SVG}title"), drawing
        assert root.findtext(f"{SVG}desc"), drawing


class Watched:
    """A page of the browser that reaches nobody but this machine, and what went wrong on it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.troubles: list[str] = []
        page.context.route("**/*", self._let_home)
        page.on("console", lambda line: self._hear(line.type, line.text))
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("requestfailed", lambda request: self.troubles.append(request.url))

    def _let_home(self, route: Route) -> None:
        if urlsplit(route.request.url).hostname == "127.0.0.1":
            route.continue_()
        else:
            self.troubles.append(route.request.url)
            route.abort()

    def _hear(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"}:
            self.troubles.append(text)


@pytest.fixture
def watched(page: Page) -> Watched:
    return Watched(page)


@pytest.mark.parametrize(
    "path, heading",
    [
        ("", "One key, one effect"),
        ("quickstart/", "Quickstart: FastAPI"),
        ("concepts/", "Concepts"),
        ("reference/python/", "Names in Python"),
    ],
)
def test_a_page_is_shown_without_trouble(
    watched: Watched, documentation_url: str, path: str, heading: str
) -> None:
    watched.page.goto(documentation_url + path, wait_until="networkidle")
    shown = watched.page.locator("article h1").first
    assert shown.inner_text().startswith(heading)
    pictures = watched.page.locator("article img").evaluate_all(
        "all => all.filter(each => each.complete && !each.naturalWidth).map(each => each.src)"
    )
    assert pictures == []
    assert watched.troubles == []


@pytest.mark.parametrize(
    "words, wanted",
    [
        ("takeover", "concepts/"),
        ("Retry-After", "reference/http/"),
        ("Idempotency-Expires", "reference/http/"),
        ("outcome-unknown", "problems/outcome-unknown/"),
        ("request-in-progress", "problems/request-in-progress/"),
        ("postgres", "how-to/postgresql/"),
    ],
)
def test_what_is_searched_for_is_among_the_first(
    watched: Watched, documentation_url: str, words: str, wanted: str
) -> None:
    watched.page.goto(f"{documentation_url}?q={words}", wait_until="networkidle")
    found = watched.page.locator(".md-search-result__item > .md-search-result__link")
    found.first.wait_for(state="attached")
    first = [urlsplit(each.get_attribute("href") or "").path for each in found.all()[:3]]
    assert f"/{wanted}" in first
    assert watched.troubles == []


def test_commands_are_copied_without_what_they_say(
    watched: Watched, documentation_url: str
) -> None:
    watched.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    watched.page.goto(f"{documentation_url}quickstart-workflow/", wait_until="networkidle")
    block = watched.page.locator(".highlight", has_text="oncekey webhooks create").first
    block.hover()
    block.locator("button").first.click()
    copied = watched.page.wait_for_function(
        "async () => await navigator.clipboard.readText()"
    ).json_value()
    assert [line.split()[0] for line in copied.splitlines() if line] == ["oncekey", "HOOK=wh_..."]


@pytest.mark.parametrize("scheme, colour", [("light", "default"), ("dark", "slate")])
def test_it_can_be_read_by_everybody(
    watched: Watched, documentation_url: str, scheme: str, colour: str
) -> None:
    watched.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    for path in ("", "quickstart-django/", "reference/http/", "integration/"):
        watched.page.goto(documentation_url + path, wait_until="networkidle")
        watched.page.locator(f"body[data-md-color-scheme={colour}]").wait_for(state="attached")
        found = Axe().run(watched.page).response["violations"]
        assert [
            each for each in found if each["impact"] in GRAVE and each["id"] not in THEIRS
        ] == []


def test_a_list_to_tick_off_has_boxes(watched: Watched, documentation_url: str) -> None:
    watched.page.goto(f"{documentation_url}integration/")
    assert watched.page.locator("article li [type=checkbox]").count() > 5
    assert "[ ]" not in watched.page.locator("article").inner_text()


@pytest.mark.parametrize("width", [1280, 1000, 390])
def test_headings_of_the_doors_take_one_line(
    watched: Watched, documentation_url: str, width: int
) -> None:
    watched.page.set_viewport_size({"width": width, "height": 844})
    watched.page.goto(documentation_url)
    heights = watched.page.locator(".doors h2").evaluate_all("all => all.map(h => h.clientHeight)")
    assert len(heights) == 3
    assert len(set(heights)) == 1


def test_the_menu_of_a_phone_begins_at_home(watched: Watched, documentation_url: str) -> None:
    watched.page.set_viewport_size({"width": 390, "height": 844})
    watched.page.goto(documentation_url)
    watched.page.locator(".md-header label[for=__drawer]").click()
    menu = watched.page.locator(".md-nav--primary > .md-nav__list > .md-nav__item")
    names = [each.inner_text().split("\n")[0].strip() for each in menu.all()]
    assert names[:3] == ["Home", "Begin", "How to"]


def test_a_phone_shows_what_to_do_after_each_answer(
    watched: Watched, documentation_url: str
) -> None:
    watched.page.set_viewport_size({"width": 390, "height": 844})
    watched.page.goto(f"{documentation_url}integration/", wait_until="networkidle")
    box = watched.page.get_by_role("columnheader", name="do", exact=True).bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= 390


def test_a_phone_shows_it_without_moving_sideways(watched: Watched, documentation_url: str) -> None:
    watched.page.set_viewport_size({"width": 390, "height": 844})
    for path in ("", "concepts/", "reference/http/", "reference/python/"):
        watched.page.goto(documentation_url + path)
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= 390, path
