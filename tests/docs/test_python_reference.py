"""The page on Python has every public name; `python docs/reference/python.py` writes it."""

import inspect
import re
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

import pytest

from tests.fixtures.pages import DOCS

FOLDER = DOCS / "reference"
PAGE = (FOLDER / "python.md").read_text()


def writer() -> ModuleType:
    spec = spec_from_file_location("python_page", FOLDER / "python.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


WRITER = writer()
NAMES: dict[str, Any] = WRITER.public_names()
SECTIONS = dict(re.findall(r"(?ms)^## `(oncekey[\w.]*)`\n(.*?)(?=^## |\Z)", PAGE))


def test_the_page_is_up_to_date() -> None:
    assert WRITER.page() == PAGE, "run: python docs/reference/python.py"


def test_every_public_module_is_there() -> None:
    """A public module is a file beside the rooms, or `oncekey.django`."""
    package = DOCS.parent / "src" / "oncekey"
    files = {f"oncekey.{each.stem}" for each in package.glob("*.py") if each.stem != "__init__"}
    # The client is a room with a door of its own.
    rooms = {f"oncekey.{name}" for name in ("django", "client") if (package / name).is_dir()}
    assert set(SECTIONS) == {"oncekey"} | files | rooms


@pytest.mark.parametrize("path", NAMES)
def test_a_name_is_there_with_its_parameters(path: str) -> None:
    module, _, name = path.rpartition(".")
    value = NAMES[path]
    forms = re.findall(
        rf"(?ms)^```py\n((?:async )?{name}\b.*?)\n```$|^\| `({name}\b.*?)` \|", SECTIONS[module]
    )
    assert len(forms) == 1
    form = "".join(forms[0])
    if "(" in form and not getattr(value, "_is_protocol", False):
        parameters = [each for each in inspect.signature(value).parameters if each != "self"]
        assert [each for each in parameters if not re.search(rf"\b{each}\b", form)] == []


def test_the_words_are_about_what_there_is() -> None:
    words = WRITER._WORDS
    members = {f"{owner}.{each}" for owner, names in words["members"].items() for each in names}
    for path in (*words["says"], *members):
        owner = path if path in NAMES else path.rpartition(".")[0]
        assert owner in NAMES, path
        assert owner == path or hasattr(NAMES[owner], path.rpartition(".")[2]), path
