"""What the page on the model says, to be compared with what is measured."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "model.md"


def section(name: str) -> str:
    found = re.search(rf"(?ms)^## {name}\n(.*?)(?=^## |\Z)", PAGE.read_text())
    assert found is not None, name
    return found[1]


def rows(text: str) -> list[list[str]]:
    """Of every table in the text, without heads."""
    lines = re.findall(r"(?m)^\|(.+)\|$", text)
    cells = [[cell.strip() for cell in line.split("|")] for line in lines]
    rules = {at for at, row in enumerate(cells) if set(row[0]) <= set("-:")}
    return [row for at, row in enumerate(cells) if not {at, at + 1} & rules]


def counts_of(model: str, scenario: str) -> tuple[int, ...]:
    """States, transitions and depth, as the page has them."""
    found = {row[0]: row for row in rows(section(f"States of the {model}"))}
    return tuple(int(cell.replace(",", "")) for cell in found[scenario][-3:])
