"""Pictures say in words what they show, are readable on light and dark, and stand on a page."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.fixtures.pages import DOCS

SVG = "{http://www.w3.org/2000/svg}"
PICTURES = sorted((DOCS / "pictures").glob("*.svg"))


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.stem)
def test_a_picture_can_be_read(picture: Path) -> None:
    root = ET.parse(picture).getroot()
    assert root.get("role") == "img"
    assert all(root.findtext(f"{SVG}{name}") for name in ("title", "desc"))
    assert "prefers-color-scheme: dark" in (root.findtext(f"{SVG}style") or "")


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.stem)
def test_a_picture_stands_on_a_page(picture: Path) -> None:
    pages = [page for page in DOCS.rglob("*.md") if f"pictures/{picture.name}" in page.read_text()]
    assert pages
