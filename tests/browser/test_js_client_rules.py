"""The rules of the client for browsers that need no browser: its own tests, run by Node.js."""

import json
import shutil
import subprocess
import tomllib

import pytest

from tests.fixtures.served import ROOT
from tests.fixtures.web_shop import CLIENT

FILES = sorted((CLIENT / "test").glob("*.test.js"))
LONGEST_FILE = 400


def test_there_are_some() -> None:
    assert len(FILES) >= 5


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_its_own_tests_pass(file: object) -> None:
    node = shutil.which("node")
    assert node is not None, "Node.js is missing; it comes with npm"
    done = subprocess.run(
        [node, "--test", "--test-reporter=tap", str(file)],
        cwd=CLIENT,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout
    assert "\n# fail 0\n" in done.stdout


def test_the_package_is_what_it_says() -> None:
    package = json.loads((CLIENT / "package.json").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (package["name"], package["version"]) == (project["name"], project["version"])
    assert package["license"] == project["license"]
    assert package["type"] == "module"
    assert not {"dependencies", "devDependencies", "scripts"} & set(package)
    named = [*package["exports"]["."].values(), package["types"], *package["files"]]
    assert [each for each in named if not (CLIENT / each).exists()] == []


def test_no_file_is_too_long_to_read_in_one_sitting() -> None:
    files = [*CLIENT.rglob("*.js"), *CLIENT.rglob("*.ts")]
    lengths = {str(file): len(file.read_text().splitlines()) for file in files}
    assert {file: length for file, length in lengths.items() if length > LONGEST_FILE} == {}


def test_every_file_says_what_lives_in_it() -> None:
    files = [*CLIENT.rglob("*.js"), *CLIENT.rglob("*.ts")]
    assert [str(file) for file in files if not file.read_text().startswith("// ")] == []
