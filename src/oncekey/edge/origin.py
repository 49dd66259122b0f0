"""Where an upstream is, as its answers tell it: taken out of the lines that name places, so that a
client is sent to the edge, and learns nothing of what is behind."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # The package of upstreams needs httptools, and policies are read without it.
    from oncekey.upstream.address import Address

PLACES = frozenset({b"content-location", b"link", b"location", b"refresh"})
"""The lines of an answer that name places."""

Origin = re.Pattern[bytes]


def origin_of(address: Address) -> Origin:
    """Finds every way to say `http://host:port/base` and the slashes after it."""
    host = re.escape(address.authority)
    if (address.port, address.tls) in {(80, False), (443, True)}:
        host += b"(?::%d)?" % address.port
    base = b"(?:%b(?=[^\\w.~%%-]|$))?" % re.escape(address.base)
    # What goes on is another host; more slashes than one would name another host, too.
    return re.compile(b"(?i:https?:)?//(?i:%b)(?![\\w.:@-])%b[/\\\\]*" % (host, base))


def without(origin: Origin, value: bytes) -> bytes:
    return origin.sub(b"/", value)
