"""The reference is complete: what it leaves out of commands, settings, errors, problems is red."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest

from oncekey.cli.main import cli
from oncekey.config import Settings, load
from oncekey.config.kinds import Named, Section, Sections
from oncekey.core import errors
from oncekey.wire.problem import codes
from tests.fixtures.tables import names_in, rows

DOCS = Path(__file__).parents[2] / "docs"
COMMON = {"--config", "--url", "--json", "--help", "-h"}


def page(name: str) -> str:
    return (DOCS / "reference" / f"{name}.md").read_text()


def commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


COMMANDS = dict(commands(cli, "oncekey"))
SECTIONS = dict(
    re.findall(r"^## `(oncekey [^`]+)`\n(.*?)(?=^## |\Z)", page("cli"), re.MULTILINE | re.DOTALL)
)


def test_the_commands_are_those_of_the_reference() -> None:
    assert sorted(SECTIONS) == sorted(COMMANDS)


@pytest.mark.parametrize("path", COMMANDS)
def test_every_option_is_in_the_reference(path: str) -> None:
    options = {
        word
        for each in COMMANDS[path].params
        if isinstance(each, click.Option)
        for word in each.opts
    }
    told = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", SECTIONS.get(path, "")))
    assert options - told - COMMON == set()
    assert told - options == set()


def settings(kind: type[Any] = Settings, path: str = "") -> Iterator[str]:
    for each in fields(kind):
        match each.metadata.get("kind"):
            case Section(inner) | Sections(inner):
                yield from settings(inner, f"{path}{each.name}.")
            case Named(_, Section(inner)):
                yield from settings(inner, f"{path}{each.name}.<name>.")
            case Named():
                yield f"{path}{each.name}.<class>"
            case None:
                continue
            case _:
                yield f"{path}{each.name}"


def test_the_settings_are_those_of_the_reference() -> None:
    told = rows(page("configuration"), "setting", "default", "what it says")
    assert sorted(name.strip("`") for name, _, _ in told) == sorted(settings())


def field_of(name: str) -> tuple[Any, Any]:
    """The kind and the default of a setting."""
    kind: Any = Section(Settings)
    default: Any = None
    for part in name.split("."):
        match kind:
            case Section(inner) | Sections(inner):
                (each,) = (each for each in fields(inner) if each.name == part)
                kind, default = each.metadata["kind"], each.default
            case Named(_, inner):
                kind = inner
            case _:
                raise LookupError(name)
    return kind, default


def test_the_defaults_are_those_of_the_reference() -> None:
    compared = 0
    for name, written, _ in rows(page("configuration"), "setting", "default", "what it says"):
        kind, default = field_of(name.strip("`"))
        if written.startswith("`") and default is not None:
            assert kind(tomllib.loads(f"x = {written.strip('`')}")["x"]) == default, name
            compared += 1
    assert compared > 40


def test_the_example_of_the_reference_is_right(tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", page("configuration"), re.DOTALL)
    (tmp_path / "oncekey.toml").write_text(example)
    loaded = load(tmp_path / "oncekey.toml")
    assert loaded.retention == {"interactive": 86400.0, "nightly": 129600.0}
    assert loaded.routes[0].attach_timeout == 10.0
    assert loaded.routes[1].upstream == "stock"


def test_the_variables_are_those_of_the_reference() -> None:
    """Those that the environment is asked for by name, or by the default of a setting."""
    asked = re.compile(
        r'(?:envvar=|os\.environ\.get\(|os\.environ\[|setting\(variable, )"([A-Z_]+)"'
    )
    sources = [path.read_text() for path in (DOCS.parent / "src" / "oncekey").rglob("*.py")]
    found = {name for text in sources for name in asked.findall(text)}
    told = names_in(page("configuration"), "variable", "what it says")
    assert set(told) == found | {"ONCEKEY_<SECTION>__<SETTING>"}


def subclasses(kind: type[errors.OnceKeyError]) -> Iterator[type[errors.OnceKeyError]]:
    yield kind
    for each in kind.__subclasses__():
        if each.__module__ == errors.__name__:
            yield from subclasses(each)


def test_the_errors_are_those_of_the_reference() -> None:
    told = {
        (name, code, retryable)
        for name, code, retryable, _ in rows(
            page("errors"), "exception", "code", "retryable", "when"
        )
    }
    assert told == {
        (f"`{each.__name__}`", f"`{each.code}`", "yes" if each.retryable else "no")
        for each in subclasses(errors.OnceKeyError)
    }


def test_the_error_tree_is_drawn_whole() -> None:
    drawn = re.findall(r"^(?:[│├└─ ]*)([A-Z]\w+)", errors.__doc__ or "", re.MULTILINE)
    assert sorted({each.__name__ for each in subclasses(errors.OnceKeyError)}) == sorted(
        set(drawn) - {"Every"}
    )


def test_the_problems_are_those_of_the_reference() -> None:
    told = rows(page("errors"), "code", "status", "title")
    assert told == [
        [f"[`{code}`](../problems/{code}.md)", str(status), title]
        for code, (status, title) in codes().items()
    ]


@pytest.mark.parametrize("code", codes())
def test_every_problem_has_a_page(code: str) -> None:
    status, title = codes()[code]
    text = (DOCS / "problems" / f"{code}.md").read_text()
    assert text.startswith(f"# {title}\n\n`{code}`, status {status}.\n")
    assert "## What happened" in text
    assert "## What to do" in text


def test_no_page_is_left_of_a_problem_that_is_gone() -> None:
    assert {each.stem for each in (DOCS / "problems").iterdir()} == set(codes())
