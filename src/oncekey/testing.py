"""For tests of code that uses OnceKey: time that stands still, a ledger that leaves nothing, and
deliveries of webhooks as their provider signs them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from oncekey.compose import open_ledger
from oncekey.core.clock import Clock
from oncekey.core.errors import InvalidInput
from oncekey.core.ledger import Ledger
from oncekey.webhooks.delivery import Delivery
from oncekey.webhooks.provider import Provider
from oncekey.webhooks.providers.declared import Declared, DeclaredProvider
from oncekey.webhooks.providers.registry import providers_of

__all__ = ["FrozenClock", "SignedDelivery", "memory_ledger", "signed_delivery"]

_START = datetime(2026, 1, 1, tzinfo=UTC)


class FrozenClock:
    """A clock that only moves when it is told to: `FrozenClock(datetime(2026, 1, 1, tzinfo=UTC))`.

    `now` is a moment with its zone, or seconds since 1970.
    """

    def __init__(self, now: datetime | float = _START) -> None:
        self._now = _milliseconds_of(now)
        self._steady = 0

    def now(self) -> int:
        return self._now

    def steady(self) -> int:
        return self._steady

    def advance(self, seconds: float) -> None:
        """Let time pass, for expiry and for leases alike."""
        if seconds < 0:
            raise ValueError("time does not pass backwards; step the wall clock with set()")
        self._now += round(seconds * 1000)
        self._steady += round(seconds * 1000)

    def set(self, now: datetime | float) -> None:
        """Step the wall clock, forwards or back, as an administrator would. No time passes."""
        self._now = _milliseconds_of(now)


def memory_ledger(clock: Clock | None = None, **options: Any) -> Ledger:
    """A ledger in memory, gone with the test. `options` are those of `oncekey.open`."""
    return open_ledger("memory://", clock=clock or FrozenClock(), sweep_interval=0, **options)


class SignedDelivery(NamedTuple):
    """To be sent as it is: some providers sign the URL, and Adyen signs inside the body."""

    url: str
    headers: dict[str, str]
    body: bytes


def signed_delivery(
    provider: str | DeclaredProvider,
    body: bytes | str | Mapping[str, Any] | list[Any],
    secret: str,
    *,
    url: str = "https://hooks.example.com/",
    headers: Mapping[str, str] | None = None,
    now: datetime | float | None = None,
) -> SignedDelivery:
    """What the provider would send: `signed_delivery("stripe", {"id": "evt_1"}, "whsec_test")`.

    `body` is bytes or text as it is, or what is written as JSON. An identifier that goes in a
    header is made up unless `headers` has one. `now` is this moment unless given.
    """
    found = Declared(provider) if isinstance(provider, DeclaredProvider) else _provider_of(provider)
    moment = time.time() if now is None else _milliseconds_of(now) / 1000
    pairs = tuple((k.lower().encode(), v.encode("latin-1")) for k, v in (headers or {}).items())
    content = body if isinstance(body, bytes | str) else json.dumps(body, separators=(",", ":"))
    content = content.encode() if isinstance(content, str) else content
    sent = found.sign(Delivery(url, pairs, content), secret, moment)
    written = {name.decode(): value.decode("latin-1") for name, value in sent.headers}
    return SignedDelivery(sent.url, written, sent.body)


def _provider_of(name: str) -> Provider:
    known = providers_of()
    if name not in known:
        raise InvalidInput(f"there is no provider {name!r}; there are {', '.join(sorted(known))}")
    return known[name]


def _milliseconds_of(moment: datetime | float) -> int:
    if not isinstance(moment, datetime):
        return round(moment * 1000)
    if moment.tzinfo is None:
        raise ValueError("say which zone the moment is in: datetime(…, tzinfo=UTC)")
    return round(moment.timestamp() * 1000)
