"""Where a ledger on Restate lives, as its URL says."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from oncekey.core.errors import ConfigurationError

_INGRESS, _ADMIN = 8080, 9070
_ENDPOINT = "http://127.0.0.1:9080"
_SPACE = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_OPTIONS = {"admin", "endpoint", "bind", "space", "identity"}
_FORM = "restate://host:8080[,host:8080…][?admin=host:9070&endpoint=http://host:9080&space=name]"


class RestatePlace(NamedTuple):
    ingress: tuple[str, ...]
    admin: tuple[str, ...]
    endpoint: str = _ENDPOINT
    """Where Restate reaches this process. Port 0: any that is free."""
    bind: str = ""
    """The `host` or `host:port` to listen on, when it is not the one of `endpoint`."""
    space: str = "default"
    """Keeps several ledgers on one cluster apart."""
    identity: str = ""
    """The public key of the cluster: calls that it did not sign are refused."""

    @property
    def listens_on(self) -> tuple[str, int]:
        bound, called = urlsplit(f"//{self.bind}"), urlsplit(self.endpoint)
        port = called.port if bound.port is None else bound.port
        return bound.hostname or called.hostname or "127.0.0.1", port or 0


def place_of(url: str) -> RestatePlace:
    """Raises `ConfigurationError`, which says what is wrong."""
    parts = urlsplit(url)
    if not parts.netloc or parts.path not in {"", "/"} or parts.fragment or "@" in parts.netloc:
        raise ConfigurationError(f"store url {url!r}: write {_FORM}")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    unknown = sorted(options.keys() - _OPTIONS)
    if unknown:
        raise ConfigurationError(
            f"store url {url!r}: there is no option {unknown[0]!r}; there are "
            + ", ".join(sorted(_OPTIONS))
        )
    ingress = tuple(_node(each, _INGRESS, url) for each in parts.netloc.split(","))
    hosts = [each.rsplit(":", 1)[0] for each in ingress]
    named = options.get("admin")
    admin = (
        tuple(_node(each, _ADMIN, url) for each in named.split(","))
        if named
        else tuple(dict.fromkeys(f"{host}:{_ADMIN}" for host in hosts))
    )
    return RestatePlace(
        ingress,
        admin,
        _endpoint(options.get("endpoint", _ENDPOINT), url),
        options.get("bind", ""),
        _space(options.get("space", "default"), url),
        options.get("identity", ""),
    )


def _node(text: str, port: int, url: str) -> str:
    try:
        parts = urlsplit(f"http://{text}")
        found = parts.port or port
    except ValueError as error:
        raise ConfigurationError(f"store url {url!r}: {text!r}: {error}") from None
    if not parts.hostname or parts.path or parts.query:
        raise ConfigurationError(f"store url {url!r}: {text!r} is no host; write {_FORM}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"http://{host}:{found}"


def _endpoint(text: str, url: str) -> str:
    try:
        parts = urlsplit(text)
        is_good = parts.scheme == "http" and parts.hostname and parts.port is not None
    except ValueError:
        is_good = False
    if not is_good:
        raise ConfigurationError(
            f"store url {url!r}: endpoint {text!r} is no address that Restate could call; write "
            f"endpoint={_ENDPOINT}"
        )
    return text.rstrip("/")


def _space(text: str, url: str) -> str:
    if not _SPACE.fullmatch(text):
        raise ConfigurationError(
            f"store url {url!r}: a space is 1 to 32 of a-z, 0-9 and '-', not '-' first"
        )
    return text
