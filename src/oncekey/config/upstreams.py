"""What must hold for `[upstreams]`."""

from __future__ import annotations

from urllib.parse import urlsplit

from oncekey.config.addresses import is_loopback
from oncekey.config.reader import Reader
from oncekey.config.settings import Settings
from oncekey.edge.services.place import is_service

_PORTS = {"http": 80, "https": 443}


def check_upstreams(settings: Settings, reader: Reader) -> None:
    for name, each in settings.upstreams.items():
        path = ("upstreams", name)
        if reader.is_bad((*path, "url")) or reader.is_bad(path):
            continue
        if not each.url:
            message = f"the upstream {name} has no url: add url = "
            reader.complain(path, f'{message}"http://127.0.0.1:9000"')
        elif is_service(each.url):
            continue
        elif _is_this_server(each.url, settings):
            message = f"the upstream {name} is this server itself: a request would never end"
            reader.complain((*path, "url"), f"{message}; name another port")


def _is_this_server(url: str, settings: Settings) -> bool:
    parts, server = urlsplit(url), settings.server
    port = parts.port if parts.scheme == "http+unix" else parts.port or _PORTS[parts.scheme]
    if port is None or port != server.port:
        return False
    host = parts.hostname or ""
    everywhere = server.host in {"0.0.0.0", "::"}  # noqa: S104 - compared, not listened on
    return host == server.host or (is_loopback(host) and (is_loopback(server.host) or everywhere))
