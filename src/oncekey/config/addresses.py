"""Kinds of addresses: URLs of services, and the networks of those that are trusted."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any
from urllib.parse import SplitResult, urlsplit

from oncekey.config.kinds import Kind, text, words
from oncekey.core.errors import InvalidInput

_FORMS = {"http": "http://host:port", "https": "https://host", "unix": "unix:/run/app.sock"}
# The widest networks that are anybody's own: 10.0.0.0/8 and fc00::/7.
_WIDEST = {4: 8, 6: 7}


def url(*schemes: str) -> Kind:
    """A URL of one of these schemes; no credentials in it, which messages would show."""
    forms = " or ".join(_FORMS[scheme] for scheme in schemes)

    def read(value: Any) -> str:
        given = text(value)
        parts = _split(given)
        if parts is None or parts.scheme not in schemes:
            raise InvalidInput(f"is {_shown(given)!r}, not of the form {forms}")
        if parts.username is not None or parts.password is not None:
            raise InvalidInput("has a user or password in it; give it in a setting for secrets")
        if parts.scheme == "unix":
            _check_socket(parts)
        elif not parts.hostname:
            raise InvalidInput(f"is {given!r}, without a host; write {forms}")
        elif parts.fragment:
            raise InvalidInput(f"is {given!r}; what follows '#' never reaches a server")
        return given

    return read


def _split(given: str) -> SplitResult | None:
    """None for what no URL may hold: urlsplit quietly takes out tabs and line breaks."""
    if not given.isascii() or not given.isprintable() or " " in given or "\\" in given:
        return None
    try:
        parts = urlsplit(given)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _check_socket(parts: SplitResult) -> None:
    if parts.netloc or not parts.path.startswith("/") or parts.path.endswith("/"):
        raise InvalidInput("needs the whole path of a socket: unix:/run/app.sock")
    if parts.query or parts.fragment:
        raise InvalidInput("has a query or fragment, which a socket has not")


def _shown(given: str) -> str:
    """Without what may be a password."""
    scheme, separator, rest = given.partition("://")
    return f"{scheme}{separator}…{rest[rest.rindex('@') :]}" if "@" in rest else given


def networks(value: Any) -> tuple[str, ...]:
    """Addresses and networks: `10.0.0.7`, `10.0.0.0/8`, `fd00::/8`."""
    return tuple(_network(each) for each in words(value))


def _network(given: str) -> str:
    try:
        found = ip_network(given)
    except ValueError as error:
        raise InvalidInput(f"has {given!r}, which is no address and no network: {error}") from None
    if found.prefixlen < _WIDEST[found.version]:
        raise InvalidInput(
            f"has {given!r}, which is half the world; name the addresses of your gateway"
        )
    return given
