"""Pages that are followed as guides: nothing on them is left out, and what is wrong is seen."""

import re
from pathlib import Path

import pytest

from tests.fixtures.guide import Guide, files_of
from tests.fixtures.pages import DOCS

TESTS = Path(__file__).parent
GUIDES = sorted(
    DOCS / Path(*re.findall(r'"([^"]+)"', found))
    for path in TESTS.glob("test_*.py")
    if "import Guide" in (text := path.read_text())
    for found in re.findall(r"(?m)^PAGE = DOCS / (.+)$", text)
)


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_every_block_runs_or_is_a_file(page: Path) -> None:
    blocks = re.findall(r"(?ms)^ *```(\w+)\n(.*?)^ *```$", page.read_text())
    files = set(files_of(page).values())
    loose = [
        text for kind, text in blocks if kind not in {"console", "python"} and text not in files
    ]
    assert blocks
    assert loose == []


def test_the_guides_are_found() -> None:
    assert {"stripe", "nginx", "incident", "backup", "integration"} <= {
        page.stem for page in GUIDES
    }


PAGE = """
```toml
# shop.toml
url = 127.0.0.1:8700
```

```console
$ cat shop.toml
# shop.toml
url = 127.0.0.1:8700
$ echo made op_0123456789abcdef; echo more; echo done
made op_fedcba9876543210
...
$ echo op_fedcba9876543210 > seen; NAME=tea
$ cat seen; echo $NAME
op_fedcba9876543210
tea
```
"""


def test_a_guide_is_followed(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(PAGE)
    Guide(tmp_path / "page.md", tmp_path, ports={8700: 8799}).follow()
    assert (tmp_path / "shop.toml").read_text() == "# shop.toml\nurl = 127.0.0.1:8799\n"
    assert (tmp_path / "seen").read_text() == "op_0123456789abcdef\n"


@pytest.mark.parametrize(
    "told",
    [
        "$ echo tea\ncake",
        "$ echo tea; echo cake\ntea",
        "$ echo tea\ntea\ncake",
        "$ echo tea; echo cake\n...\ntea",
        "$ echo tea\n...\ncake\n...",
        "$ false",
    ],
)
def test_what_is_not_as_shown_is_seen(told: str, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(f"```console\n{told}\n```\n")
    with pytest.raises(AssertionError):
        Guide(tmp_path / "page.md", tmp_path).follow()
