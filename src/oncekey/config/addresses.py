"""Kinds of addresses: URLs of services, and the networks of those that are trusted."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from oncekey.config.kinds import did_you_mean, text, words
from oncekey.core.errors import InvalidInput
from oncekey.edge.services.place import FORM, is_service, read_service
from oncekey.stores.restate.place import OPTIONS, read_place

_UNIX = "http+unix"
# The widest networks that are anybody's own: 10.0.0.0/8 and fc00::/7.
_WIDEST = {4: 8, 6: 7}
# Without an @: what stands between a port and an @ is hidden from screens, as a password is.
_STORES = {
    "sqlite": "sqlite:///file.db",
    "postgresql": "postgresql://host/database",
    "postgres": "postgres://host/database",
    "restate": "restate://host:8080",
    "memory": "memory://",
}


def url(value: Any) -> str:
    """An address of a service, `http://host:port` or `https://host`."""
    given = text(value)
    parts = _split(given)
    if parts is None or not _is_host(parts):
        raise InvalidInput(
            f"is {_shown(given)!r}, not of the form https://host or http://host:port"
        )
    _check(given, parts)
    return given


def upstream_url(value: Any) -> str:
    """The same, a Unix socket as `unix:/run/app.sock`, or a handler of a Restate service."""
    given = text(value)
    if is_service(given):
        read_service(given)
        return given
    parts = _split(given)
    if parts is not None and parts.scheme == "unix":
        given = _socket_url(parts)
        parts = urlsplit(given)
    if parts is None or not (_is_host(parts) or _is_socket(parts)):
        forms = f"http://host:port, https://host, unix:/run/app.sock or {FORM.split()[0]}"
        raise InvalidInput(f"is {_shown(given)!r}, not of the form {forms}")
    _check(given, parts)
    if parts.query:
        raise InvalidInput("has a query, and requests have their own")
    return given


def store_url(value: Any) -> str:
    """Where a ledger lives. What only the machine that opens it can know is not looked at."""
    given = text(value)
    scheme, separator, _ = given.partition("://")
    if not separator or scheme not in _STORES:
        raise InvalidInput(
            f"is {_shown(given)!r}, not of the form {', '.join(_STORES.values())}"
            f"{did_you_mean(scheme, _STORES)}"
        )
    if scheme == "restate":
        _check_restate(given)
    return given


def _check_restate(given: str) -> None:
    for name, _ in parse_qsl(given.partition("?")[2], keep_blank_values=True):
        if name not in OPTIONS and (meant := did_you_mean(name, OPTIONS)):
            raise InvalidInput(f"has the option {name!r}{meant}")
    read_place(given)


def _is_host(parts: SplitResult) -> bool:
    return parts.scheme in {"http", "https"} and bool(parts.hostname)


def _is_socket(parts: SplitResult) -> bool:
    path = unquote(parts.netloc)
    return parts.scheme == _UNIX and path.startswith("/") and "\0" not in path


def _check(given: str, parts: SplitResult) -> None:
    """No credentials: messages show the URL."""
    if parts.username is not None:
        raise InvalidInput("has a user or a password in it, and would be shown; take them out")
    if parts.fragment:
        raise InvalidInput(f"is {given!r}, and what follows '#' never reaches a server")
    if not (parts.path + parts.query).isascii():
        raise InvalidInput("has characters that no URL has; write them as %C3%A9")


def _split(given: str) -> SplitResult | None:
    """None for what no URL may hold: urlsplit quietly takes out tabs and line breaks."""
    if not given.isprintable() or " " in given or "\\" in given:
        return None
    try:
        parts = urlsplit(given)
        _ = parts.port, (parts.hostname or "").encode("idna")
    except ValueError:
        return None
    return parts


def _socket_url(parts: SplitResult) -> str:
    if parts.netloc or not parts.path.startswith("/") or parts.path.endswith("/"):
        raise InvalidInput("needs the whole path of a socket: unix:/run/app.sock")
    if parts.query or parts.fragment:
        raise InvalidInput("has a query or a fragment, which no socket has")
    return f"{_UNIX}://{quote(unquote(parts.path), safe='')}"


def _shown(given: str) -> str:
    """Without what may be a password."""
    scheme, separator, rest = given.partition("://")
    return f"{scheme}{separator}…{rest[rest.rindex('@') :]}" if "@" in rest else given


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


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
