"""`oncekey`: the commands, and how an expected failure becomes one line and an exit code."""

from __future__ import annotations

from typing import Any

import click

from oncekey.cli.apikeys import apikeys
from oncekey.cli.audit import audit
from oncekey.cli.check import check
from oncekey.cli.demo import demo
from oncekey.cli.events import events
from oncekey.cli.failure import Failure
from oncekey.cli.keys import keys
from oncekey.cli.migrate import migrate
from oncekey.cli.observe import observe
from oncekey.cli.openapi import openapi
from oncekey.cli.promises import promises
from oncekey.cli.retention import retention
from oncekey.cli.schedules import schedules
from oncekey.cli.serve import serve
from oncekey.cli.sweep import sweep
from oncekey.cli.webhooks import webhooks
from oncekey.cli.workflows import workflows
from oncekey.core.errors import OnceKeyError


class Commands(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except OnceKeyError as error:
            raise Failure(str(error)) from error

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for word in args:
            if any("\ud800" <= char <= "\udfff" for char in word):
                ctx.fail(f"{word!r} is not UTF-8 text")
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """As they were added: what one does first comes first."""
        return list(self.commands)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="oncekey", message="oncekey %(version)s")
def cli() -> None:
    """One key, one effect: look after the ledger, or serve an app behind it.

    The ledger is the one of ./oncekey.toml when there is such a file, else sqlite:///oncekey.db;
    --config and --url name another, and so do ONCEKEY_CONFIG and ONCEKEY_STORE__URL.

    \b
    Start here:
      oncekey demo                      see it happen, in half a minute
      oncekey serve --app shop:app      run an app with its requests made safe to retry
      oncekey keys list                 what has been asked, newest first
      oncekey keys show op_343c28...    one operation: its state, attempts and answer
      oncekey workflows list            what runs, what it waits for, and how it ended

    Exit codes: 0 done, 1 refused or not found, 2 wrong usage.
    """


for command in (
    demo,
    serve,
    check,
    keys,
    workflows,
    promises,
    events,
    schedules,
    webhooks,
    apikeys,
    retention,
    audit,
    sweep,
    migrate,
    openapi,
    observe,
):
    cli.add_command(command)


def main() -> None:
    cli(prog_name="oncekey")
