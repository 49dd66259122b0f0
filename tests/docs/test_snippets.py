"""Every Python block of the documentation runs, each page as one program in a folder of its own.
A guide runs there a second time, as its reader may: what the first time has left does no harm. It
has no packages but those that it says to install.

A block that cannot run by itself has a comment on the line above it: `<!-- skip: the reason -->`.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.command import clean_environment
from tests.fixtures.needs import absent_for, missing_on

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"(?ms)^```python\n(.*?)^```$")
# Read by Python when it starts, from a folder on its path.
ABSENT = """
import sys


class Absent:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in {absent}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)


sys.meta_path.insert(0, Absent())
"""
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
GUIDES = sorted((ROOT / "docs" / "how-to").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_page_runs(page: Path, tmp_path: Path) -> None:
    program = tmp_path / f"{page.stem.lower().replace('-', '_')}_page.py"
    program.write_text(program_of(page))
    absent = absent_for(page) if page in GUIDES else set()
    (tmp_path / "sitecustomize.py").write_text(ABSENT.format(absent=absent or "()"))
    for _ in range(2 if page in GUIDES else 1):
        done = subprocess.run(
            [sys.executable, "-W", "error", program.name],
            cwd=tmp_path,
            env=clean_environment({"PYTHONPATH": str(tmp_path)}),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_a_guide_says_what_to_install(page: Path) -> None:
    assert missing_on(page) == set()


@pytest.mark.parametrize(
    "said, lacks",
    [
        ("", {"fastapi", "httpx"}),
        ("Needs `pip install httpx`.", {"fastapi"}),
        ("```console\n$ pip install 'oncekey[fastapi,client]'\n```", set()),
    ],
)
def test_what_is_not_said_is_seen(said: str, lacks: set[str], tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    code = "import json\nimport fastapi\nfrom httpx import get\nimport oncekey\nimport shop\n"
    own = "```python\n# shop.py\nimport json\n```\n"
    page.write_text(f"{said}\n\n{own}\n```python\n{code}```\n")
    assert missing_on(page) == lacks


def test_a_block_is_skipped_for_a_reason_only(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```python\none\n```\n\n<!-- skip: needs a card -->\n```python\ntwo\n```\n"
        "<!-- skip: -->\n\n```python\nthree\n```\n```console\n$ four\n```\n"
    )
    assert program_of(page).split() == ["one", "three"]
