"""How a route treats keys. One frozen value per route; checked when it is made."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

from oncekey.core.errors import ConfigurationError
from oncekey.core.model import Takeover
from oncekey.core.recovery import Recover
from oncekey.wire.body import MEMORY_LIMIT
from oncekey.wire.fingerprint import Fingerprint

UNSAFE_METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})


Key = Literal["optional", "required", "prohibited", "ignored"]
"""What a key means on a route. `ignored`: the header is not looked at, whatever it holds."""


@dataclass(frozen=True, slots=True)
class Rule:
    key: Key = "optional"
    methods: frozenset[str] = UNSAFE_METHODS
    in_flight: Literal["conflict", "attach"] = "conflict"
    attach_timeout: float = 30.0
    """Seconds an attached request waits before it gets the 409 after all."""
    takeover: Takeover = "rerun"
    recover: Recover | None = None
    retention: str = "interactive"
    fingerprint: Fingerprint = field(default_factory=Fingerprint)
    store_server_errors: bool = False
    store_events: bool = False
    """Keep server-sent events, while they stay below `max_stored_body`."""
    max_stored_body: int = 1 << 20
    max_request_body: int = 64 << 20
    drop_headers: frozenset[bytes] = frozenset()
    """Lower-case names of response headers that are not kept, beside the ones that never are."""
    fail_open: bool = False
    """Run without protection while the store is away. Counted; off unless you ask for it."""
    wait: float = field(init=False)
    most_in_memory: int = field(init=False)
    """Larger bodies go to a file, or are refused."""

    def __post_init__(self) -> None:
        _one_of("key", self.key, get_args(Key))
        _one_of("in_flight", self.in_flight, ("conflict", "attach"))
        _one_of("takeover", self.takeover, ("rerun", "refuse", "recover"))
        if self.takeover == "recover" and self.recover is None:
            raise ConfigurationError("takeover = 'recover' needs a recover function")
        if self.attach_timeout < 0 or self.max_stored_body < 0 or self.max_request_body < 0:
            raise ConfigurationError("timeouts and sizes cannot be negative")
        wait = self.attach_timeout if self.in_flight == "attach" else 0.0
        object.__setattr__(self, "wait", wait)
        object.__setattr__(self, "most_in_memory", min(self.max_request_body, MEMORY_LIMIT))


def rule_of(base: Rule | None = None, **options: Any) -> Rule:
    """`base` with `options` changed; plain strings, lists and dictionaries are taken as well."""
    if "fingerprint" in options:
        options["fingerprint"] = _fingerprint_of(options["fingerprint"])
    if "methods" in options:
        options["methods"] = frozenset(name.upper() for name in options["methods"])
    if "drop_headers" in options:
        names = options["drop_headers"]
        options["drop_headers"] = frozenset(_bytes(name).lower() for name in names)
    if "required" in options:
        options["key"] = "required" if options.pop("required") else "optional"
    try:
        return replace(base or Rule(), **options)
    except TypeError as error:
        known = ", ".join(each.name for each in fields(Rule) if each.init)
        raise ConfigurationError(f"{error}; a route takes: required, {known}") from None


def _fingerprint_of(given: Any) -> Fingerprint:
    match given:
        case Fingerprint():
            return given
        case "value" | "bytes" | "none":
            return Fingerprint(given)
        case list() | tuple() if given and all(isinstance(name, str) for name in given):
            return Fingerprint.of_fields(*given)
    raise ConfigurationError(
        f"fingerprint {given!r} is neither 'value', 'bytes', 'none' nor a list of fields"
    )


def _bytes(name: str | bytes) -> bytes:
    return name if isinstance(name, bytes) else name.encode("latin-1")


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigurationError(f"{name} = {value!r} is not one of {', '.join(allowed)}")
