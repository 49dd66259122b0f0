"""Every example can be found, is short, tells what it needs, and is followed by a test."""

import re
from pathlib import Path

import pytest

from tests.fixtures.followed import EXAMPLES
from tests.fixtures.gateways import NAMES as GATEWAYS
from tests.fixtures.needs import missing

TESTS = Path(__file__).parent
INDEX = (EXAMPLES / "README.md").read_text()
FOLDERS = sorted(
    path.name for path in EXAMPLES.iterdir() if path.is_dir() and path.name[0] not in "._"
)
# Tours through much of the product, which take their time.
TOURS = {"quickstart", "restate-cluster"}
MOST_LINES = 18


def lines_of(readme: str) -> list[str]:
    """Prose and commands."""
    return [line for line in readme.splitlines() if line and not line.startswith(("#", "```"))]


def is_tested(name: str) -> bool:
    """By a file of its own, or by one that names it."""
    if name in GATEWAYS or (TESTS / f"test_{name.replace('-', '_')}.py").exists():
        return True
    others = (path for path in TESTS.glob("test_*.py") if path != Path(__file__))
    return any(f'"{name}"' in path.read_text() for path in others)


def test_there_are_examples() -> None:
    assert {"fastapi", "workflow", "celery"} <= set(FOLDERS)


@pytest.mark.parametrize("name", FOLDERS)
class TestExample:
    def test_it_tells_what_to_type_in_a_few_lines(self, name: str) -> None:
        readme = (EXAMPLES / name / "README.md").read_text()
        assert "```console\n$ " in readme
        assert name in TOURS or len(lines_of(readme)) <= MOST_LINES

    def test_it_tells_what_it_needs_and_where_to_read_on(self, name: str) -> None:
        readme = (EXAMPLES / name / "README.md").read_text()
        assert re.search(r"`pip install '?oncekey|make (?:serve|cluster)", readme)
        assert re.search(r"\]\((?:\.\./)+docs/\S+\.md", readme)

    def test_what_it_says_to_install_is_all_that_it_takes(self, name: str) -> None:
        assert name in TOURS or missing(EXAMPLES / name) == set()

    def test_the_index_has_it_with_a_guide(self, name: str) -> None:
        row = rf"(?m)^\| \S.* \| \[{name}\]\({name}/README\.md\) \| \[.+\]\(\.\./docs/\S+\) \|$"
        assert name == "quickstart" or re.search(row, INDEX)
        assert f"]({name}/README.md)" in INDEX

    def test_a_test_follows_it(self, name: str) -> None:
        assert is_tested(name)
