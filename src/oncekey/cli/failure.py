"""Expected failures: a line each on stderr, exit code 1, no traceback and no secret."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import click

from oncekey.cli.text import escaped
from oncekey.compose.address import without_secrets
from oncekey.core.errors import OnceKeyError


class Failure(click.ClickException):
    exit_code = 1

    def show(self, file: IO[Any] | None = None) -> None:
        for line in self.message.splitlines():
            click.echo(f"error: {escaped(without_secrets(line))}", file=file, err=file is None)


@contextmanager
def way_out(kind: type[OnceKeyError], hint: str) -> Iterator[None]:
    """A failure of that kind is told with what to do about it here."""
    try:
        yield
    except kind as error:
        raise Failure(f"{error}; {hint}") from error
