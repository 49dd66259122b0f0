"""Every Python block of the documentation runs, each page as one program in a folder of its own.

A block that cannot run by itself has a comment on the line above it: `<!-- skip: the reason -->`.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"(?ms)^```python\n(.*?)^```$")
SKIPPED = re.compile(r"<!-- skip: \S.*-->\n+\Z")


def program_of(page: Path) -> str:
    """The blocks that run, on the lines where they stand in the page."""
    text = page.read_text()
    lines = [""] * (text.count("\n") + 1)
    for block in BLOCK.finditer(text):
        if SKIPPED.search(text, 0, block.start()):
            continue
        first = text.count("\n", 0, block.start(1))
        code = block[1].split("\n")
        lines[first : first + len(code)] = code
    return "\n".join(lines)


PAGES = [
    page
    for page in sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    if program_of(page).strip()
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_page_runs(page: Path, tmp_path: Path) -> None:
    program = tmp_path / f"{page.stem.lower().replace('-', '_')}_page.py"
    program.write_text(program_of(page))
    done = subprocess.run(
        [sys.executable, "-W", "error", program.name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_block_is_skipped_for_a_reason_only(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```python\none\n```\n\n<!-- skip: needs a card -->\n```python\ntwo\n```\n"
        "<!-- skip: -->\n\n```python\nthree\n```\n```console\n$ four\n```\n"
    )
    assert program_of(page).split() == ["one", "three"]
