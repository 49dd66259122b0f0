"""`oncekey demo`: a tour in the terminal, of what really happens."""

from __future__ import annotations

import sys

import click

from oncekey.cli.failure import Failure


@click.command()
@click.option("--fast", is_flag=True, help="Without pauses, as when nobody watches.")
@click.option("--no-color", is_flag=True, help="In plain text, as with NO_COLOR set.")
@click.option("--keep", is_flag=True, help="Keep its folder: configuration, ledger, server's log.")
def demo(*, fast: bool, no_color: bool, keep: bool) -> None:
    """See it happen, in half a minute: retries, a crash, a forged webhook.

    Starts a server of its own on this machine, with a ledger in a temporary folder and a bank
    behind it that counts its charges. Requests are sent twice, the server is killed in the middle
    of a workflow, a webhook is repeated and forged. Every claim is checked: where something is not
    as it is told, the exit code is 1. Nothing is left behind.

    \b
    Examples:
      oncekey demo
      oncekey demo --fast --no-color
      oncekey demo --keep
    """
    try:
        from oncekey.cli.tour.bank import Bank
        from oncekey.cli.tour.guide import guide
        from oncekey.cli.tour.patience import Stopped
        from oncekey.cli.tour.teller import Teller, console_of
    except ModuleNotFoundError as error:
        raise Failure(f"{error}; the tour needs it: pip install 'oncekey[edge]'") from error
    teller = Teller(console_of(color=not no_color), is_paced=sys.stdout.isatty() and not fast)
    try:
        guide(teller, bank=Bank(), keep=keep)
    except Stopped as stopped:
        click.echo("stopped; its server is gone" + ("" if keep else ", and its folder"), err=True)
        raise SystemExit(128 + stopped.number) from stopped
