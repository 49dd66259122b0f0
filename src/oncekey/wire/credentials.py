"""The API key of a request: `Authorization: Bearer ok_…` or `X-API-Key: ok_…`."""

from __future__ import annotations

from collections.abc import Iterable

_HEADERS = (b"authorization", b"x-api-key")


def secret_in(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The one secret that is sent, names of headers in lower case; None for none, or for two."""
    found = {_secret_of(name, value) for name, value in headers if name in _HEADERS}
    if len(found) != 1:
        return None
    secret = found.pop()
    return secret.decode("ascii") if secret and secret.isascii() else None


def _secret_of(name: bytes, value: bytes) -> bytes:
    if name == b"x-api-key":
        return value.strip()
    scheme, _, rest = value.strip().partition(b" ")
    return rest.strip() if scheme.lower() == b"bearer" else b""
