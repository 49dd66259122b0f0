"""Lists, a page at a time: their options, how a page is printed, and the command for the next."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import click
from click.core import ParameterSource

from oncekey.cli.options import Command, configured
from oncekey.cli.output import print_shape, print_table
from oncekey.cli.parameters import limited
from oncekey.compose.address import without_secrets

T = TypeVar("T")


class Page(NamedTuple):
    """What was asked of a list."""

    ctx: click.Context
    limit: int
    before: Any
    """As the option --before of the command reads it; None for the first page."""
    as_json: bool

    @property
    def reach(self) -> int:
        """One more than is shown tells whether there is another page."""
        return self.limit + 1

    def print(
        self,
        name: str,
        found: Sequence[T],
        shape_of: Callable[[T], Any],
        columns: Sequence[str],
        row_of: Callable[[T], Sequence[str]],
        cursor_of: Callable[[T], str],
    ) -> None:
        shown = found[: self.limit]
        if self.as_json:
            print_shape([shape_of(each) for each in shown])
        elif not shown:
            click.echo(f"no {name}")
        else:
            print_table(columns, [row_of(each) for each in shown])
            if len(found) > self.limit:
                click.echo(f"more: {next_command(self.ctx, before=cursor_of(shown[-1]))}")


def older(
    place_of: Callable[[str], Any],
    what: str,
    told: str = "Only those older than this one.",
    *,
    metavar: str = "ID",
) -> Callable[[Command], Command]:
    """The option --before. `place_of` answers None for a text that is not `what` it should be."""

    def read(_: click.Context, __: click.Parameter, text: str | None) -> Any:
        place = None if text is None else place_of(text)
        if text is not None and place is None:
            raise click.BadParameter(f"{text!r} is not {what}", param_hint="--before")
        return place

    return click.option("--before", metavar=metavar, callback=read, help=told)


def paged(before: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Give a command the options of a list, and it gets `settings`, and `page` for the others."""

    def give(command: Command) -> Command:
        @limited
        @before
        @configured
        @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
        @click.pass_context
        @functools.wraps(command)
        def with_page(
            ctx: click.Context, /, limit: int, before: Any, *, as_json: bool, **arguments: Any
        ) -> Any:
            return command(page=Page(ctx, limit, before, as_json), **arguments)

        return with_page

    return give


def next_command(ctx: click.Context, **changed: Any) -> str:
    """The one that was given, with one option changed."""
    words = [ctx.command_path]
    for parameter in ctx.command.params:
        name = parameter.name or ""
        given = ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        value = changed.get(name, ctx.params.get(name) if given else None)
        if value is not None:
            words += [parameter.opts[0], shlex.quote(without_secrets(str(value)))]
    return " ".join(words)
