"""Where a ledger on Restate lives, as its URL says."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from oncekey.core.errors import ConfigurationError, InvalidInput

_INGRESS, _ADMIN = 8080, 9070
_ENDPOINT = "http://127.0.0.1:9080"
# Part of the names of services, where the space stands in others.
_TAKEN = {"workflow", "task"}
_SPACE = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_IDENTITY = re.compile(r"publickeyv1_[1-9A-HJ-NP-Za-km-z]{1,64}")
OPTIONS = ("admin", "endpoint", "bind", "space", "identity", "shares")
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
    shares: bool = False
    """Whether other processes of the same app listen there as well."""

    @property
    def listens_on(self) -> tuple[str, int]:
        bound, called = urlsplit(f"//{self.bind}"), urlsplit(self.endpoint)
        port = called.port if bound.port is None else bound.port
        return bound.hostname or called.hostname or "127.0.0.1", port or 0


def place_of(url: str) -> RestatePlace:
    """Raises `ConfigurationError`, which says what is wrong."""
    try:
        return read_place(url)
    except InvalidInput as error:
        raise ConfigurationError(f"the store url {error}") from None


def read_place(url: str) -> RestatePlace:
    """Raises `InvalidInput`: what is wrong with a URL, to be told after the name of it."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise InvalidInput(f"is no URL: {error}") from None
    if "@" in parts.netloc:
        raise InvalidInput("has a user or a password in it, and Restate knows neither")
    is_text = url.isprintable() and " " not in url and "\\" not in url
    if not is_text or not parts.netloc or parts.path not in {"", "/"} or parts.fragment:
        raise InvalidInput(f"is {url!r}, not of the form {_FORM}")
    options = _options_of(parts.query)
    ingress = tuple(_node(each, _INGRESS) for each in parts.netloc.split(","))
    hosts = [each.rsplit(":", 1)[0] for each in ingress]
    named = options.get("admin")
    admin = (
        tuple(_node(each, _ADMIN) for each in named.split(","))
        if named
        else tuple(dict.fromkeys(f"{host}:{_ADMIN}" for host in hosts))
    )
    return RestatePlace(
        ingress,
        admin,
        _endpoint(options.get("endpoint", _ENDPOINT)),
        _bind(options.get("bind", "")),
        _space(options.get("space", "default")),
        _identity(options.get("identity", "")),
        _shares(options.get("shares", "no")),
    )


def _options_of(query: str) -> dict[str, str]:
    pairs = parse_qsl(query, keep_blank_values=True)
    options = dict(pairs)
    unknown = sorted(options.keys() - OPTIONS)
    if unknown:
        raise InvalidInput(f"has the option {unknown[0]!r}, none of {', '.join(OPTIONS)}")
    if len(options) < len(pairs):
        raise InvalidInput("has an option twice; several hosts are separated by commas")
    return options


def _node(text: str, port: int) -> str:
    try:
        parts = urlsplit(f"http://{text}")
        found = parts.port or port
    except ValueError as error:
        raise InvalidInput(f"has {text!r}, which is no host: {error}") from None
    if not parts.hostname or parts.path or parts.query or "@" in text:
        raise InvalidInput(f"has {text!r}, which is no host; write {_FORM}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"http://{host}:{found}"


def _endpoint(text: str) -> str:
    try:
        parts = urlsplit(text)
        is_good = parts.scheme == "http" and parts.hostname and parts.port is not None
    except ValueError:
        is_good = False
    if not is_good or "@" in text or "?" in text or "#" in text:
        raise InvalidInput(
            f"has endpoint={text}, no address that Restate could call; write endpoint={_ENDPOINT}"
        )
    return text.rstrip("/")


def _bind(text: str) -> str:
    try:
        parts = urlsplit(f"//{text}")
        is_good = not text or (parts.hostname and parts.netloc == text and "@" not in text)
        _ = parts.port
    except ValueError:
        is_good = False
    if not is_good:
        raise InvalidInput(f"has bind={text}, no address to listen on; write bind=0.0.0.0:9080")
    return text


def _space(text: str) -> str:
    if not _SPACE.fullmatch(text) or text in _TAKEN:
        raise InvalidInput(
            f"has space={text}; a space is 1 to 32 of a-z, 0-9 and '-', not '-' first, and neither "
            "'workflow' nor 'task'"
        )
    return text


def _identity(text: str) -> str:
    if text and not _IDENTITY.fullmatch(text):
        raise InvalidInput(
            "has an identity that is no public key of a cluster; write identity=publickeyv1_…"
        )
    return text


def _shares(text: str) -> bool:
    if text not in {"yes", "no"}:
        raise InvalidInput(f"has shares={text}, neither yes nor no")
    return text == "yes"
