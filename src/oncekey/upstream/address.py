"""Where an upstream is: its URL, taken apart once."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from oncekey.core.errors import ConfigurationError

_PORTS = {"http": 80, "https": 443}
_BASE = re.compile(r"(/[!\"$-~]*)?")


class Address(NamedTuple):
    host: str
    port: int
    tls: bool
    socket: str
    """The path of a Unix socket, or nothing."""
    authority: bytes
    """What the Host header says."""
    base: bytes
    """What stands before every target, without a slash at its end."""

    def __str__(self) -> str:
        return self.socket or f"{self.host}:{self.port}"


def address_of(url: str) -> Address:
    """`http://host`, `https://host:port/base`, `http+unix://%2Frun%2Fapp.sock/base`."""
    if not url.isprintable() or " " in url:
        raise ConfigurationError("the URL of an upstream has a blank or a control character in it")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConfigurationError(f"the URL of an upstream cannot be read: {error}") from None
    _check(parts)
    base = parts.path.rstrip("/").encode("ascii")
    if parts.scheme == "http+unix":
        return Address("", 0, False, _path_of(parts.netloc), b"localhost", base)
    host = parts.hostname or ""
    usual = _PORTS[parts.scheme]
    name = f"[{host}]" if ":" in host else host
    authority = name if port in {None, usual} else f"{name}:{port}"
    tls = parts.scheme == "https"
    return Address(host, port or usual, tls, "", _ascii(authority), base)


def _check(parts: SplitResult) -> None:
    if parts.scheme not in {"http", "https", "http+unix"} or not parts.netloc:
        raise ConfigurationError("an upstream has a URL such as http://127.0.0.1:9000")
    if parts.username is not None or parts.password is not None:
        raise ConfigurationError("the URL of an upstream has no user and no password in it")
    if parts.query or parts.fragment:
        raise ConfigurationError("the URL of an upstream has no query and no fragment")
    if not _BASE.fullmatch(parts.path):
        raise ConfigurationError("the path of an upstream's URL is printable ASCII")
    if parts.scheme != "http+unix" and not parts.hostname:
        raise ConfigurationError("the URL of an upstream names a host")


def _path_of(netloc: str) -> str:
    path = unquote(netloc)
    if not path.startswith("/") or "\0" in path:
        raise ConfigurationError("a Unix socket is named like http+unix://%2Frun%2Fapp.sock")
    return path


def _ascii(authority: str) -> bytes:
    try:
        return authority.encode("ascii" if authority.isascii() else "idna")
    except UnicodeError:
        raise ConfigurationError("the host of an upstream's URL is not a host name") from None
