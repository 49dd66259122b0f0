"""The page on Restate: its program runs there, its URL is the store's, its node starts, and its
commands are ones that Restate knows."""

import re
import runpy
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest

from oncekey.config import load
from oncekey.stores.restate.envelope import LARGEST_ANSWER, LARGEST_REQUEST
from oncekey.stores.restate.place import OPTIONS, RestatePlace, read_place
from tests.fixtures.console import commands_of
from tests.fixtures.guarded import program
from tests.fixtures.pages import DOCS, code_of
from tests.fixtures.served import ROOT

PAGE = DOCS / "restate.md"
TEXT = PAGE.read_text()
NODE, ROUTE = re.findall(r"(?ms)^```toml\n(.*?)^```", TEXT)


@pytest.mark.restate
def test_the_program_runs_on_restate(restate_url: str, tmp_path: Path) -> None:
    (tmp_path / "page.py").write_text(
        code_of("restate.md").replace("restate://127.0.0.1:8080", restate_url)
    )
    runpy.run_path(str(tmp_path / "page.py"))


def test_the_url_is_read_as_the_page_says() -> None:
    (url,) = re.findall(r"(?m)^restate://.*$", TEXT)
    place = read_place(url)
    assert place == RestatePlace(
        tuple(f"http://n{number}:8080" for number in (1, 2, 3)),
        tuple(f"http://n{number}:9070" for number in (1, 2, 3)),
        "http://10.0.0.7:9080",
        space="shop",
    )


def test_every_option_of_the_url_is_on_the_page() -> None:
    table = TEXT.partition("## The URL")[2].partition("##")[0]
    told = dict(re.findall(r"(?m)^\| `(\w+)` \| (.+?) \|", table))
    assert tuple(told) == OPTIONS
    bare = read_place("restate://n1")
    assert (told["endpoint"], told["space"]) == (f"`{bare.endpoint}`", f"`{bare.space}`")
    assert bare.ingress + bare.admin == ("http://n1:8080", "http://n1:9070")


def test_the_route_to_a_service_on_restate_is_right(tmp_path: Path) -> None:
    (tmp_path / "oncekey.toml").write_text(ROUTE)
    settings = load(tmp_path / "oncekey.toml", {}, {})
    assert settings.upstreams["cart"].url.startswith("restate://")


def test_the_sizes_are_those_of_the_envelope() -> None:
    megabytes = (LARGEST_REQUEST >> 20, LARGEST_ANSWER >> 20)
    assert "requests above {} MiB, answers above {} MiB".format(*megabytes) in TEXT


@pytest.mark.restate
def test_the_node_is_configured_as_restate_understands_it(tmp_path: Path) -> None:
    # What it does not know, it leaves out of what it has read.
    (tmp_path / "n1.toml").write_text(NODE)
    words = [program("restate-server"), "-c", "n1.toml", "--dump-config"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "deprecated" not in done.stdout + done.stderr
    read = tomllib.loads(done.stdout)
    assert _missing(tomllib.loads(NODE), read) == []


def _missing(told: dict[str, object], read: dict[str, object], before: str = "") -> list[str]:
    found = []
    for name, value in told.items():
        there = read.get(name)
        if isinstance(value, dict):
            found += _missing(value, there if isinstance(there, dict) else {}, f"{before}{name}.")
        elif there is None:
            found.append(f"{before}{name}")
    return found


def test_the_example_has_nothing_that_the_page_does_not_tell() -> None:
    told = tomllib.loads(NODE)
    for number in (1, 2, 3):
        file = ROOT / "examples" / "restate-cluster" / f"n{number}.toml"
        node = tomllib.loads(file.read_text())
        for name in ("log-format", "log-disable-ansi-codes", "shutdown-timeout"):
            del node[name]
        assert _missing(node, told) == []
        assert node["node-name"] == f"n{number}"
        assert node["auto-provision"] is (number == 1)


COMMANDS = sorted({each.line for each in commands_of(PAGE) if each.line.startswith("restatectl")})


@pytest.mark.restate
@pytest.mark.parametrize("line", COMMANDS)
def test_restatectl_knows_the_command(line: str) -> None:
    _, *words = shlex.split(line)
    asked = [program("restatectl"), *words, "--help"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
