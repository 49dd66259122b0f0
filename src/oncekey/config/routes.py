"""What must hold within `[[routes]]`, between them, and between them and the rest."""

from __future__ import annotations

import re

from oncekey.config.kinds import did_you_mean
from oncekey.config.lines import Path
from oncekey.config.paths import whose_path
from oncekey.config.reader import Reader
from oncekey.config.route_settings import RouteSettings
from oncekey.config.settings import Settings
from oncekey.core.errors import InvalidInput
from oncekey.core.retention import DEFAULT_CLASSES
from oncekey.edge.services.place import ServicePlace, is_service, read_service
from oncekey.wire.route import route
from oncekey.wire.rule import UNSAFE_METHODS

_PARAMETER = re.compile(r"\{\w+(:path)?\}")
_SOURCE = re.compile(r"wh_[A-Za-z0-9_-]{1,128}")
# They are about whoever is behind the edge.
_OF_UPSTREAMS = ("level", "identity", "uncertain", "source")
# Deliveries follow the rules of their provider instead.
_OF_CLIENTS = ("in_flight", "attach_timeout", "fingerprint")


def check_routes(settings: Settings, reader: Reader) -> None:
    for index, each in enumerate(settings.routes):
        checked = _Checked(each, ("routes", index), settings, reader)
        checked.check_path()
        checked.check_policy()
        checked.check_takeover()
        checked.check_retention()
        checked.check_upstream()
        checked.check_provider()
    _check_twins(settings.routes, reader)


class _Checked:
    def __init__(self, each: RouteSettings, path: Path, settings: Settings, reader: Reader) -> None:
        self._each = each
        self._path = path
        self._settings = settings
        self._reader = reader

    def check_path(self) -> None:
        path = self._each.path
        if not path:
            if not self._told("path"):
                self._complain("", 'a route needs a path, such as path = "/orders"')
            return
        try:
            route(path)
        except InvalidInput as error:
            self._complain("path", str(error))
            return
        if (owner := whose_path(path, self._settings)) is not None:
            self._complain("path", f"{path} belongs to {owner}, which answers it; choose another")

    def check_policy(self) -> None:
        each = self._each
        if self._told("policy", "required", "methods"):
            return
        if each.policy is not None and each.required is not None:
            self._complain("required", "a route has a policy or says required, not both")
        elif each.policy is None and each.required is None and methods_of(each) & UNSAFE_METHODS:
            message = f"the route {each.path} changes things and has no policy: add policy = "
            self._complain("", f'{message}"REQUIRED_A", "ACCEPTED" or "PROHIBITED"')

    def check_takeover(self) -> None:
        each = self._each
        if self._told("takeover", "recover"):
            return
        asks = each.takeover == "recover"
        if asks and each.recover is None:
            message = 'takeover = "recover" needs a function to ask: recover = "module:function"'
            self._complain("takeover", message)
        elif each.recover is not None and not asks:
            self._complain("recover", 'recover is only asked with takeover = "recover"')
        elif each.uncertain == "recover" and not asks:
            message = 'uncertain = "recover" asks the same function as takeover = "recover": add '
            self._complain("uncertain", f"{message}that, or choose refuse or rerun")
        elif each.uncertain == "rerun" and each.takeover not in {None, "rerun"}:
            message = f'uncertain = "rerun" asks again what takeover = "{each.takeover}" does not: '
            self._complain("uncertain", f"{message}what may be asked twice may be so after both")

    def check_retention(self) -> None:
        name, classes = self._each.retention, {**DEFAULT_CLASSES, **self._settings.retention}
        if name is None or name in classes or self._reader.is_bad(("retention", name)):
            return
        known = did_you_mean(name, classes) or f"; there are: {', '.join(classes)}"
        self._complain("retention", f"[retention] has no class {name!r}{known}")

    def check_upstream(self) -> None:
        name, known = self._each.upstream, self._settings.upstreams
        if name is None:
            if not self._told("upstream"):
                self._check_without_upstream()
        elif name not in known and not self._reader.is_bad(("upstreams", name)):
            meant = did_you_mean(name, known) or (
                f"; there are: {', '.join(known)}"
                if known
                else f': add [upstreams.{name}] with url = "http://127.0.0.1:9000"'
            )
            self._complain("upstream", f"[upstreams] has no {name!r}{meant}")
        elif name in known and is_service(known[name].url):
            self._check_service(read_service(known[name].url))

    def _check_service(self, place: ServicePlace) -> None:
        for name in place.parameters:
            if f"{{{name}}}" not in self._each.path and f"{{{name}:path}}" not in self._each.path:
                message = f"the path has no {{{name}}}, which the URL of the upstream needs: "
                self._complain("path", f"{message}add it, or take it out there")

    def _check_without_upstream(self) -> None:
        for name in _OF_UPSTREAMS:
            if getattr(self._each, name) is not None:
                message = f"{name} only counts on a route with an upstream: add upstream = …, or "
                self._complain(name, f"{message}take it out")
        if self._each.policy == "REQUIRED_B":
            message = "REQUIRED_B is for deliveries, which go to an upstream: add upstream = …, or "
            self._complain(
                "policy", f"{message}choose HANDLER_INTERNAL_C for an app that checks them itself"
            )

    def check_provider(self) -> None:
        each = self._each
        if each.policy == "REQUIRED_B":
            for name in _OF_CLIENTS:
                if getattr(each, name) is not None:
                    message = f"{name} has no meaning with REQUIRED_B: deliveries are answered "
                    self._complain(name, f"{message}as their provider wants it; take it out")
        elif each.source is not None and each.upstream is not None and not self._told("policy"):
            self._complain("source", 'source only goes with policy = "REQUIRED_B"')
        if each.source is not None and not _SOURCE.fullmatch(each.source):
            message = f"is {each.source!r}, not the id of a webhook such as wh_k3v5yd7wq2mz4bxr; "
            self._complain("source", f"source {message}see `oncekey webhooks list`")

    def _complain(self, name: str, message: str) -> None:
        self._reader.complain((*self._path, name) if name else self._path, message)

    def _told(self, *names: str) -> bool:
        return self._reader.told(self._path, *names)


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
