"""Webhooks and their deliveries as people and programs read them. Secrets are never in here."""

from __future__ import annotations

from collections.abc import Sequence

from oncekey.api.admin.sources import shape_of_source
from oncekey.cli.text import moment
from oncekey.config import Settings
from oncekey.core.deliveries import LoggedDelivery
from oncekey.core.model import operation_id_of
from oncekey.core.scope import TENANT_LEVEL
from oncekey.durable.shapes import Shape
from oncekey.webhooks.naming import path_of
from oncekey.webhooks.secrets import Ring
from oncekey.webhooks.sources import Source

COLUMNS = ("ID", "TENANT", "PROJECT", "PROVIDER", "THEN", "LABEL", "CREATED")
DELIVERY_COLUMNS = ("AT", "VERDICT", "IDENTIFIER", "OPERATION", "BYTES", "TIMES", "REASON")
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "127.0.0.1"}  # noqa: S104 - where to send, not to listen


def url_of(source: Source, settings: Settings) -> str:
    """Where its provider finds it, as far as the configuration knows."""
    public = settings.webhooks.public_url
    return f"{public.rstrip('/') if public else server_url(settings)}{path_of(source)}"


def server_url(settings: Settings) -> str:
    host = _ANYWHERE.get(settings.server.host, settings.server.host)
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.server.port}"


def row_of(source: Source) -> tuple[str, ...]:
    return (
        source.id,
        source.tenant,
        "" if source.project == TENANT_LEVEL else source.project,
        source.provider,
        str(source.then),
        source.label,
        moment(source.created_at),
    )


def plain_of(source: Source, settings: Settings) -> Shape:
    """As admins see it in the API, and where that is."""
    return {**shape_of_source(source), "url": url_of(source, settings)}


def pairs_of(source: Source, settings: Settings, ring: Ring | str) -> list[tuple[str, str]]:
    return [
        ("id", source.id),
        ("tenant", source.tenant),
        ("project", "" if source.project == TENANT_LEVEL else source.project),
        ("provider", source.provider),
        ("url", url_of(source, settings)),
        ("then", str(source.then)),
        ("label", source.label),
        ("repeats", source.repeats),
        ("created", moment(source.created_at, zone=True)),
        *(("secret", each) for each in ([ring] if isinstance(ring, str) else _told(ring))),
    ]


def _told(ring: Ring) -> list[str]:
    if not ring:
        return ["none"]
    return [
        ", ".join(
            filter(
                None,
                [
                    f"since {moment(each.created_at)}" if each.created_at else "kept elsewhere",
                    f"until {moment(each.until)}" if each.until is not None else "",
                ],
            )
        )
        for each in ring
    ]


def delivery_rows(deliveries: Sequence[LoggedDelivery]) -> list[tuple[str, ...]]:
    return [
        (
            moment(each.at),
            each.verdict,
            each.identifier,
            "" if each.operation is None else operation_id_of(each.operation),
            str(each.size) if each.times == 1 else "",
            str(each.times),
            each.reason,
        )
        for each in deliveries
    ]
