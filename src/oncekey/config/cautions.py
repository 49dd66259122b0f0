"""What is allowed, and worth a second look. `oncekey check` tells it."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from oncekey.config.addresses import is_loopback
from oncekey.config.exposed import exposed_in
from oncekey.config.settings import Settings
from oncekey.edge.policy import KEYED
from oncekey.stores.restate.place import read_place


def cautions_of(settings: Settings) -> Iterator[str]:
    yield from _about_tokens(settings)
    yield from _about_routes(settings)
    yield from _about_restate(settings.store.url)
    yield from exposed_in(settings)
    vault = settings.webhooks.vault.url
    if vault is not None and _is_open(vault):
        yield f"webhooks.vault.url: secrets come over plain http from {vault}; use https"


def _about_tokens(settings: Settings) -> Iterator[str]:
    jwt = settings.auth.jwt
    if jwt is None:
        return
    if jwt.audience is None:
        yield "auth.jwt: tokens for any audience are accepted; name yours with audience"
    if jwt.issuer is None and jwt.jwks_url is not None:
        yield "auth.jwt: tokens of any issuer with these keys are accepted; name it with issuer"


def _about_routes(settings: Settings) -> Iterator[str]:
    used = {each.upstream for each in settings.routes}
    for name in settings.upstreams:
        if name not in used:
            yield f"upstreams.{name}: no route goes there"
    for index, each in enumerate(settings.routes):
        if settings.metrics.enabled and each.path == settings.metrics.path:
            yield (
                f"routes[{index}]: {each.path} tells of this server itself, and never reaches the "
                "route; use another path for one of them, or [metrics] enabled = false"
            )
        if each.identity == "optional" and each.policy_in_force in KEYED:
            yield (
                f"routes[{index}]: callers without credentials are one caller on {each.path}, who "
                "sees the answers to all their keys"
            )


def _about_restate(url: str) -> Iterator[str]:
    if not url.startswith("restate://"):
        return
    place = read_place(url)
    away = [each for each in place.ingress if _is_open(each)]
    if away and is_loopback(urlsplit(place.endpoint).hostname or ""):
        yield (
            f"store.url: Restate at {away[0]} would look for {place.endpoint} on its own machine; "
            "name an address of this one with endpoint="
        )
    if not place.identity and (away or not is_loopback(place.listens_on[0])):
        yield (
            "store.url: whoever reaches the endpoint can call it; have Restate sign its calls, and "
            "name its public key with identity="
        )


def _is_open(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")
