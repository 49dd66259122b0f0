"""What a provider sent. Trust is a type: a `Delivery` is anybody's, an `Event` is verified."""

from __future__ import annotations

from typing import NamedTuple

from oncekey.core.errors import SignatureInvalid
from oncekey.core.model import Headers


class Delivery(NamedTuple):
    """A request as it came in; nothing of it is believed, and nothing of it is parsed."""

    url: str
    """As the provider knows it: scheme, host, path and query, percent-encoded."""
    headers: Headers
    """Names in lower case."""
    body: bytes
    method: str = "POST"

    def header(self, name: str) -> str | None:
        """The one line of that name; two lines could be read in two ways, so they are refused."""
        wanted = name.lower().encode()
        found = [value for each, value in self.headers if each == wanted]
        if len(found) > 1:
            raise SignatureInvalid(f"there are {len(found)} lines {name}")
        return found[0].decode("latin-1").strip() if found else None


class Item(NamedTuple):
    """One thing that happened. Most deliveries tell of one, batches of several."""

    identifier: str
    """The provider's own name for it, the same with every attempt to deliver it."""
    body: bytes
    """Of a batch: this one alone, as JSON. Else the whole body."""
    signed: bool = True
    """Whether the signature covers the identifier. One it does not cover can be made up."""


class Event(NamedTuple):
    """A delivery that its provider signed. Only providers make one."""

    delivery: Delivery
    items: tuple[Item, ...]
    reply: bytes | None = None
    """What the provider wants to hear at once, with nothing done: Slack's challenge."""
    covered: bytes = b""
    """What the signature covers, where that is not the body as it came."""

    @property
    def proof(self) -> bytes:
        """The same for everything that can be made of one signature.

        To be remembered with an identifier that is not signed: what is seen again under another
        one was captured, not sent.
        """
        return self.covered or self.delivery.body
