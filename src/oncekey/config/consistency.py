"""What must hold between settings; each kind of them has its own file, the server's are here."""

from __future__ import annotations

from collections.abc import Mapping

from oncekey.config.addresses import is_loopback
from oncekey.config.auth import check_auth
from oncekey.config.reader import Reader
from oncekey.config.routes import check_routes
from oncekey.config.schedules import check_schedules
from oncekey.config.settings import ServerSettings, Settings, StoreSettings
from oncekey.config.upstreams import check_upstreams
from oncekey.config.webhooks import check_webhooks


def check_settings(settings: Settings, environ: Mapping[str, str], reader: Reader) -> None:
    _check_store(settings.store, reader)
    _check_ports(settings.server, reader)
    _check_demo(settings, reader)
    check_auth(settings.auth, environ, reader)
    check_upstreams(settings, reader)
    check_routes(settings, reader)
    check_webhooks(settings, reader)
    check_schedules(settings.schedules, reader)


def _check_store(store: StoreSettings, reader: Reader) -> None:
    slow = store.heartbeat is not None and store.heartbeat >= store.lease
    if slow and not reader.told(("store",), "heartbeat", "lease"):
        message = "store.heartbeat must be shorter than store.lease"
        reader.complain(("store", "heartbeat"), message)


def _check_ports(server: ServerSettings, reader: Reader) -> None:
    if reader.told(("server",), "port", "grpc_port", "workers"):
        return
    path = ("server", "grpc_port")
    if server.grpc_port and server.grpc_port == server.port:
        reader.complain(path, f"server.port and server.grpc_port are both {server.port}")
    elif server.grpc_port == 0 and server.workers > 1:
        message = "grpc_port = 0 would be another port in each of several workers; choose one"
        reader.complain(path, message)


def _check_demo(settings: Settings, reader: Reader) -> None:
    """The key is shown in the clear: only who is on the machine anyway may be let in by it."""
    host = settings.server.host
    if settings.auth.api_keys.demo and not is_loopback(host):
        message = f"a demo key is for one machine, and server.host is {host!r}; listen on "
        message += "127.0.0.1, or make keys with `oncekey apikeys create` instead"
        reader.complain(("auth", "api_keys", "demo"), message)
    if settings.console.demo and not is_loopback(host):
        message = f"a demo key of an admin is for one machine, and server.host is {host!r}; listen "
        message += "on 127.0.0.1, or make one with `oncekey apikeys create --admin` instead"
        reader.complain(("console", "demo"), message)
    if settings.webhooks.demo is not None and not is_loopback(host):
        message = f"a demo webhook is for one machine, and server.host is {host!r}; listen on "
        message += "127.0.0.1, or make webhooks with `oncekey webhooks create` instead"
        reader.complain(("webhooks", "demo"), message)
