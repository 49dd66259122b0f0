"""What commands about webhooks work with, and what their options mean."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import click

from oncekey.cli.failure import Failure
from oncekey.cli.options import opened
from oncekey.config import Settings
from oncekey.config.routes import methods_of
from oncekey.core.errors import OnceKeyError
from oncekey.core.ledger import Ledger
from oncekey.core.webhooks import is_webhook_id

if TYPE_CHECKING:
    from oncekey.webhooks.provider import Provider
    from oncekey.webhooks.sources import Source, Sources
    from oncekey.webhooks.then import Then

# A shorter one can be found by trying, by whoever has a delivery that was signed with it.
_SHORT = 16


class Means(NamedTuple):
    settings: Settings
    ledger: Ledger
    sources: Sources
    providers: Mapping[str, Provider]

    def provider(self, name: str) -> Provider:
        found = self.providers.get(name)
        if found is None:
            known = ", ".join(sorted(self.providers))
            raise Failure(
                f"there is no provider {name!r}; there are {known}; others are declared in "
                "[[providers]]"
            )
        return found

    async def source(self, webhook_id: str) -> Source:
        found = await self.sources.find(webhook_id)
        if found is None:
            raise Failure("there is no webhook of that id; see `oncekey webhooks list`")
        return found


@contextmanager
def means_of(settings: Settings) -> Iterator[Means]:
    """Tells of the key file when it is made meanwhile."""
    from oncekey.compose.webhooks import key_file_of, providers_for, sources_of

    file = key_file_of(settings)
    there = file.exists()
    with opened(settings) as ledger:
        yield Means(settings, ledger, sources_of(settings, ledger), providers_for(settings))
    if not there and file.exists():
        click.echo(
            f"made {file}: it opens the secrets of webhooks, so keep it where the ledger's backups "
            "are not",
            err=True,
        )


def checked_id(_: click.Context, __: click.Parameter, webhook_id: str | None) -> str | None:
    if webhook_id is not None and not is_webhook_id(webhook_id):
        raise Failure("there is no webhook of that id; see `oncekey webhooks list`")
    return webhook_id


def then_of(text: str, settings: Settings) -> Then:
    """A path that leads nowhere so far is told, not refused: its route may come later."""
    from oncekey.webhooks.acting import check_then
    from oncekey.webhooks.then import Forward, parse_then

    then = parse_then(text)
    check_then(then)
    if isinstance(then, Forward) and not _is_routed(then.path, settings):
        click.echo(
            f"note: no route with an upstream takes POST {then.path}; until [[routes]] has one, "
            "deliveries are answered with 503",
            err=True,
        )
    return then


def _is_routed(path: str, settings: Settings) -> bool:
    from oncekey.wire.route import route

    there = [each for each in settings.routes if each.upstream and "POST" in methods_of(each)]
    return any(route(each.path).pattern.fullmatch(path) for each in there)


def secret_of(given: str | None, provider: Provider) -> str | None:
    """What was given; `-` reads standard input. Whatever is odd about it is told, not refused."""
    if given is None:
        return None
    secret = sys.stdin.read() if given == "-" else given
    if secret.count("\n") == 1:
        secret = secret.removesuffix("\n")
    if 0 < len(secret) < _SHORT:
        click.echo(
            f"note: the secret has {len(secret)} characters; one of {_SHORT} or more is safer",
            err=True,
        )
    _try_out(secret, provider)
    return secret


def _try_out(secret: str, provider: Provider) -> None:
    from oncekey.webhooks.delivery import Delivery
    from oncekey.webhooks.samples import sample_of

    try:
        provider.sign(Delivery("http://localhost/", (), sample_of(provider.name)), secret, 0.0)
    except (OnceKeyError, ValueError) as error:
        reason = f": {error}" if isinstance(error, OnceKeyError) else ""
        click.echo(f"note: no test deliveries can be signed with this secret{reason}", err=True)
