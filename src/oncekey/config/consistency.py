"""What must hold between settings: of the server, of routes among each other, and between both and
the rest."""

from __future__ import annotations

import re
from ipaddress import ip_address

from oncekey.config.kinds import did_you_mean
from oncekey.config.lines import Path
from oncekey.config.reader import Reader
from oncekey.config.route_settings import RouteSettings
from oncekey.config.schedules import check_schedules
from oncekey.config.settings import ServerSettings, Settings
from oncekey.core.errors import InvalidInput
from oncekey.core.retention import DEFAULT_CLASSES
from oncekey.wire.route import route
from oncekey.wire.rule import UNSAFE_METHODS

_PARAMETER = re.compile(r"\{\w+(:path)?\}")


def check_settings(settings: Settings, reader: Reader) -> None:
    store = settings.store
    slow = store.heartbeat is not None and store.heartbeat >= store.lease
    if slow and not _told(reader, ("store",), "heartbeat", "lease"):
        message = "store.heartbeat must be shorter than store.lease"
        reader.complain(("store", "heartbeat"), message)
    _check_ports(settings.server, reader)
    _check_demo(settings, reader)
    for index, each in enumerate(settings.routes):
        path = ("routes", index)
        _check_path(each, path, reader)
        _check_policy(each, path, reader)
        _check_takeover(each, path, reader)
        _check_retention(each, settings, path, reader)
    _check_twins(settings.routes, reader)
    check_schedules(settings.schedules, reader)


def _check_ports(server: ServerSettings, reader: Reader) -> None:
    if _told(reader, ("server",), "port", "grpc_port", "workers"):
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
    if settings.auth.api_keys.demo and not _is_loopback(host):
        message = f"a demo key is for one machine, and server.host is {host!r}; listen on "
        message += "127.0.0.1, or make keys with `oncekey apikeys create` instead"
        reader.complain(("auth", "api_keys", "demo"), message)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _told(reader: Reader, path: Path, *names: str) -> bool:
    """Whether one of these is wrong by itself; what follows from that is not worth a line."""
    return any(reader.is_bad((*path, name)) for name in names)


def _check_path(each: RouteSettings, path: Path, reader: Reader) -> None:
    if not each.path:
        if not _told(reader, path, "path"):
            reader.complain(path, 'a route needs a path, such as path = "/orders"')
        return
    try:
        route(each.path)
    except InvalidInput as error:
        reader.complain((*path, "path"), str(error))


def _check_policy(each: RouteSettings, path: Path, reader: Reader) -> None:
    if _told(reader, path, "policy", "required", "methods"):
        return
    if each.policy is not None and each.required is not None:
        message = "a route has a policy or says required, not both"
        reader.complain((*path, "required"), message)
    elif each.policy is None and each.required is None and methods_of(each) & UNSAFE_METHODS:
        message = f"the route {each.path} changes things and has no policy: "
        reader.complain(path, message + 'add policy = "REQUIRED_A", "ACCEPTED" or "PROHIBITED"')


def _check_takeover(each: RouteSettings, path: Path, reader: Reader) -> None:
    if _told(reader, path, "takeover", "recover"):
        return
    asks = each.takeover == "recover"
    if asks and each.recover is None:
        message = 'takeover = "recover" needs a function to ask: recover = "module:function"'
        reader.complain((*path, "takeover"), message)
    elif each.recover is not None and not asks:
        reader.complain((*path, "recover"), 'recover is only asked with takeover = "recover"')


def _check_retention(each: RouteSettings, settings: Settings, path: Path, reader: Reader) -> None:
    name, classes = each.retention, {**DEFAULT_CLASSES, **settings.retention}
    if name is None or name in classes or reader.is_bad(("retention", name)):
        return
    known = did_you_mean(name, classes) or f"; there are: {', '.join(classes)}"
    reader.complain((*path, "retention"), f"[retention] has no class {name!r}{known}")


def _check_twins(routes: tuple[RouteSettings, ...], reader: Reader) -> None:
    """The first route that fits decides: a second one with the same path would never be asked."""
    seen: dict[tuple[str, str], int] = {}
    for index, each in enumerate(routes):
        places = [(_PARAMETER.sub(r"{\1}", each.path), name) for name in methods_of(each)]
        taken = {seen[place] for place in places if place in seen}
        if taken and each.path:
            message = f"routes[{index}] and routes[{min(taken)}] are the same route {each.path}"
            reader.complain(("routes", index, "path"), f"{message}; keep one")
        for place in places:
            seen.setdefault(place, index)


def methods_of(each: RouteSettings) -> frozenset[str]:
    return UNSAFE_METHODS if each.methods is None else frozenset(each.methods)
