"""What comes with OnceKey when it is installed, with every extra there is: under licences that ask
nothing of the programs of those who use it."""

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# By what licences call themselves, in whatever field.
FREE = re.compile(
    r"MIT|BSD|Apache|ISC|PSF|Python Software Foundation|MPL|Mozilla|Unlicense|HPND", re.IGNORECASE
)
COPYLEFT = re.compile(r"GPL|Affero|General Public|EUPL|SSPL|Business Source|Commons Clause")
# A library that is imported and never changed: its licence asks that it can be replaced by another
# version of it, which any package in an environment of Python can.
ARGUED = {"psycopg": "LGPL-3.0-only", "psycopg-binary": "LGPL-3.0-only"}


def needed(lines: Iterable[str], extras: frozenset[str], found: dict[str, frozenset[str]]) -> None:
    """All that these bring here, and what that brings: into `found`, by name, with its extras."""
    for line in lines:
        wanted = Requirement(line)
        chosen = [{"extra": extra} for extra in extras or {""}]
        if wanted.marker is not None and not any(map(wanted.marker.evaluate, chosen)):
            continue
        name = canonicalize_name(wanted.name)
        before, more = found.get(name), frozenset(wanted.extras)
        if name == "oncekey" or (before is not None and more <= before):
            continue
        found[name] = (before or frozenset()) | more
        needed(metadata.requires(name) or (), found[name], found)


@cache
def runtime() -> tuple[str, ...]:
    found: dict[str, frozenset[str]] = {}
    needed(PROJECT["dependencies"], frozenset(), found)
    for lines in PROJECT["optional-dependencies"].values():
        needed(lines, frozenset(), found)
    return tuple(sorted(found))


def licence_of(name: str) -> str:
    """What it says of itself: an expression, or else classifiers and the first line of a text."""
    about = metadata.metadata(name)
    expression = about.get("License-Expression")
    if expression:
        return str(expression)
    kinds = [each for each in about.get_all("Classifier") or () if each.startswith("License ::")]
    text = str(about.get("License") or "").strip().partition("\n")[0]
    return "; ".join([*(kind.rpartition(":: ")[2] for kind in kinds), text])


def test_there_is_something_to_look_at() -> None:
    assert {"click", "msgspec", "cryptography", "psycopg-binary", "grpcio"} <= set(runtime())
    assert len(runtime()) > 40


@pytest.mark.parametrize("name", runtime())
def test_a_licence_asks_nothing_of_those_who_use_it(name: str) -> None:
    licence = licence_of(name)
    if name in ARGUED:
        assert licence == ARGUED[name]
        return
    assert FREE.search(licence), licence
    # Of several, one may be chosen.
    assert not COPYLEFT.search(licence) or " OR " in licence, licence


def test_a_licence_that_asks_something_is_found() -> None:
    for licence in (
        "GPL-3.0-or-later",
        "AGPL-3.0",
        "GNU Affero General Public License v3",
        "SSPL-1.0",
    ):
        assert COPYLEFT.search(licence)
        assert not FREE.search(licence)
