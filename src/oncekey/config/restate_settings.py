"""Settings of durable work and of forwarded requests on a Restate cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oncekey.config.field import setting
from oncekey.config.kinds import choice, duration, header_names, whole
from oncekey.core.errors import InvalidInput

_CREDENTIALS = frozenset(
    {"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"}
)
_MOST_ATTEMPTS = 1_000_000_000


def _passed_headers(value: Any) -> tuple[str, ...]:
    names = tuple(name.lower() for name in header_names(value))
    for name in names:
        if name in _CREDENTIALS:
            raise InvalidInput(
                f"has {name!r}: Restate keeps requests, and credentials must not be kept; the "
                "service behind is told who calls by the headers of the identity"
            )
    return names


@dataclass(frozen=True, slots=True)
class RestateSettings:
    headers: tuple[str, ...] = setting(_passed_headers, ())
    """Of requests that are forwarded, besides those that every service needs."""
    max_attempts: int | None = setting(whole(1, _MOST_ATTEMPTS))
    """How often Restate calls for a piece of work that ends its process; for ever unless given."""
    on_max_attempts: str = setting(choice("pause", "kill"), "pause")
    startup_timeout: float = setting(duration, 60.0)
    """How long `oncekey serve` waits for a cluster that does not answer yet."""
