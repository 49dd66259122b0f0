"""What each command says of itself. UPDATE_SNAPSHOTS=1 in the environment writes it down anew."""

import os
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from oncekey.cli.main import cli

SNAPSHOTS = Path(__file__).parent / "snapshots"


def commands(
    group: click.Group = cli, path: str = "oncekey"
) -> Iterator[tuple[str, click.Command]]:
    yield path, group
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


COMMANDS = dict(commands())


def help_of(path: str) -> str:
    _, *words = path.split()
    done = CliRunner().invoke(cli, [*words, "--help"], prog_name="oncekey", terminal_width=80)
    assert done.exit_code == 0
    return done.output


@pytest.mark.parametrize("path", COMMANDS)
def test_help_is_as_written_down(path: str) -> None:
    snapshot = SNAPSHOTS / f"{path.replace(' ', '-')}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        snapshot.write_text(help_of(path))
    assert help_of(path) == snapshot.read_text()


def test_no_snapshot_is_left_over() -> None:
    assert {path.stem for path in SNAPSHOTS.iterdir()} == {
        path.replace(" ", "-") for path in COMMANDS
    }


@pytest.mark.parametrize(
    "path", [path for path, each in COMMANDS.items() if not isinstance(each, click.Group)]
)
def test_help_teaches_by_example(path: str) -> None:
    _, _, examples = help_of(path).partition("Examples:")
    assert f"{path}" in examples


@pytest.mark.parametrize("path", COMMANDS)
def test_every_option_says_what_it_does(path: str) -> None:
    silent = [
        each.opts[0]
        for each in COMMANDS[path].params
        if isinstance(each, click.Option) and not each.help
    ]
    assert silent == []
