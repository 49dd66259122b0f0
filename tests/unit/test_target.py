"""Objects named by `module:name`."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from oncekey.compose.target import check_target, load_target
from oncekey.core.errors import ConfigurationError


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with modules, forgotten after the test."""
    before, path = set(sys.modules), list(sys.path)
    (tmp_path / "target_shop.py").write_text("class make:\n    app = 42\n")
    (tmp_path / "target_broken.py").write_text("import nothing_of_this_name\n")
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_name_is_found_beside_the_configuration(folder: Path) -> None:
    assert load_target("target_shop:make.app", folder) == 42


@pytest.mark.parametrize(
    "target, told",
    [
        ("target_nowhere:app", "there is no module target_nowhere in "),
        ("target_nowhere.inner:app", "there is no module target_nowhere.inner in "),
        ("target_shop.inner:app", "there is no module target_shop.inner in "),
        ("target_shop:app", "the module target_shop has no 'app'"),
        ("target_shop:make.nothing", "the module target_shop has no 'make.nothing'"),
    ],
)
def test_what_is_not_there_is_told(folder: Path, target: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{target}: {told}"):
        load_target(target, folder)


def test_a_mistake_inside_the_module_is_its_own(folder: Path) -> None:
    with pytest.raises(ModuleNotFoundError, match="nothing_of_this_name"):
        load_target("target_broken:app", folder)


def test_checking_does_not_run_it(folder: Path) -> None:
    check_target("target_broken:app", folder)
    assert "target_broken" not in sys.modules
