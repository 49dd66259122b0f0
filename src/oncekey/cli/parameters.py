"""What options of durable work take: a tenant, JSON, a length of time, a request key."""

from __future__ import annotations

import secrets
import sys
from typing import Any

import click
import msgspec

from oncekey.cli.options import Command
from oncekey.core.errors import InvalidInput
from oncekey.core.retention import MAX_SECONDS, seconds_of
from oncekey.core.scope import namespace_of


class Json(click.ParamType):  # type: ignore[type-arg]
    """JSON, kept to the letter. `-` reads it from standard input, as large as it may be."""

    name = "JSON"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> bytes:
        if isinstance(value, bytes):
            return value
        body = sys.stdin.buffer.read() if value == "-" else str(value).encode()
        try:
            msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self.fail(f"this is not JSON: {error}; text needs quotes: '\"text\"'", param, ctx)
        return body.strip()


class Duration(click.ParamType):  # type: ignore[type-arg]
    """Seconds, from `30s`, `15m`, `24h` or `7d`."""

    name = "DURATION"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            seconds = seconds_of(str(value))
        except InvalidInput as error:
            self.fail(str(error), param, ctx)
        if seconds > MAX_SECONDS:
            self.fail("no more than ten years", param, ctx)
        return seconds


class Overlap(Duration):
    """The same, and no time at all: `0s`."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        return 0.0 if str(value) in {"0", "0s"} else super().convert(value, param, ctx)


def for_tenant(command: Command) -> Command:
    """Give `command` the option that says whose work is meant, as `tenant`."""
    return click.option(
        "--tenant",
        default="default",
        show_default=True,
        callback=checked_tenant,
        help="Whose work is meant.",
    )(command)


def limited(command: Command) -> Command:
    """Give `command` the option that bounds a list, as `limit`."""
    return click.option(
        "--limit",
        type=click.IntRange(1, 1000),
        default=50,
        show_default=True,
        help="How many at most.",
    )(command)


def request_key_of(given: str | None) -> str:
    """The key of a request that must have one. One that is made here is told before it is used:
    whatever happens then, the same request can be sent again."""
    if given is not None:
        return given
    made = f"cli-{secrets.token_hex(8)}"
    click.echo(f"request key: {made} (with --request-key {made} this can be repeated)", err=True)
    return made


def checked_tenant(_: click.Context, __: click.Parameter, tenant: str | None) -> str | None:
    if tenant is not None:
        namespace_of(tenant)
    return tenant
