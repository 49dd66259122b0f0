"""What a provider is, to those who receive its deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from oncekey.webhooks.delivery import Delivery, Event


class Provider(Protocol):
    @property
    def name(self) -> str:
        """As in the path of its webhooks: `stripe`."""
        ...

    def verify(self, delivery: Delivery, secrets: Sequence[str], now: float) -> Event:
        """`secrets` newest first, any of which may have signed it; `now` in seconds since 1970.

        Raises `SignatureInvalid`, and `IdentifierMissing` for one that is signed but has no name.
        """
        ...

    def sign(self, delivery: Delivery, secret: str, now: float) -> Delivery:
        """As the provider would send it: with headers, and a URL where that is signed too."""
        ...

    def new_secret(self) -> str:
        """A secret of the form the provider uses."""
        ...
