"""Over webhooks: one with its deliveries, and all of them one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from oncekey.cli.output import print_pairs, print_table
from oncekey.cli.webhook_means import Means
from oncekey.config import Settings
from oncekey.core.deliveries import Deliveries, LoggedDelivery
from oncekey.core.errors import SecretsUnavailable

if TYPE_CHECKING:
    from oncekey.webhooks.secrets import Ring
    from oncekey.webhooks.sources import Source

_PAGE = 100


class Shown(NamedTuple):
    source: Source
    ring: Ring | str
    """Or why its secrets are not to be had."""
    deliveries: list[LoggedDelivery]
    limit: int

    def plain(self, settings: Settings) -> dict[str, Any]:
        from oncekey.api.admin.sources import shape_of_delivery, shape_of_ring
        from oncekey.cli.webhook_shapes import plain_of

        secrets = None if isinstance(self.ring, str) else shape_of_ring(self.ring)
        deliveries = [shape_of_delivery(each) for each in self.deliveries[: self.limit]]
        return {**plain_of(self.source, settings), "secrets": secrets, "deliveries": deliveries}

    def print(self, settings: Settings) -> None:
        from oncekey.cli.webhook_shapes import DELIVERY_COLUMNS, delivery_rows, pairs_of

        print_pairs(pairs_of(self.source, settings, self.ring))
        page = self.deliveries[: self.limit]
        click.echo()
        if not page:
            click.echo("no deliveries")
            return
        print_table(DELIVERY_COLUMNS, delivery_rows(page))
        if len(self.deliveries) > self.limit:
            last = page[-1].public_id
            click.echo(f"more: oncekey webhooks show {self.source.id} --before {last}")


async def look(means: Means, webhook_id: str, before: int | None, limit: int) -> Shown:
    source = await means.source(webhook_id)
    try:
        ring: Ring | str = await means.sources.ring(source)
    except SecretsUnavailable as error:
        ring = str(error)
    log = Deliveries(means.ledger)
    return Shown(source, ring, await log.list(webhook_id, before=before, limit=limit + 1), limit)


async def reseal(means: Means) -> int:
    """How many webhooks there were."""
    count, before = 0, None
    while page := await means.sources.list(before=before, limit=_PAGE):
        for source in page:
            await means.sources.reseal(source.id)
        count, before = count + len(page), page[-1].id
    return count
