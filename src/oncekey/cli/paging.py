"""The command for the next page: the one that was given, with one option changed."""

from __future__ import annotations

import shlex
from typing import Any

import click
from click.core import ParameterSource

from oncekey.compose.address import without_secrets


def next_command(ctx: click.Context, **changed: Any) -> str:
    words = [ctx.command_path]
    for parameter in ctx.command.params:
        name = parameter.name or ""
        given = ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        value = changed.get(name, ctx.params.get(name) if given else None)
        if value is not None:
            words += [parameter.opts[0], shlex.quote(without_secrets(str(value)))]
    return " ".join(words)
