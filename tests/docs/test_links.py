"""Every relative link in the documentation leads somewhere, to the heading that it names."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "examples", "bench", "clients")
FOUND = [*ROOT.glob("*.md"), *(page for name in FOLDERS for page in (ROOT / name).rglob("*.md"))]
# What a short run of the benchmark leaves behind is not published.
PAGES = sorted(page for page in FOUND if ROOT / "bench" / "out" not in page.parents)


def headings(page: Path) -> set[str]:
    """As GitHub names them in links."""
    text = re.sub(r"(?ms)^ *```.*?^ *```", "", page.read_text())
    told = [re.sub(r"[^\w\- ]", "", line.lower()) for line in re.findall(r"(?m)^#+ (.+)$", text)]
    return {line.strip().replace(" ", "-") for line in told}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_headings(page: Path) -> None:
    found = re.findall(r"\]\((?!https?://)([^)#]*\.md|)#([^)]+)\)", page.read_text())
    places = [((page.parent / target) if target else page, name) for target, name in found]
    assert [name for place, name in places if name not in headings(place)] == []
