"""The `IDEMPOTENCY_*` settings as one frozen value, and every rule about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, NamedTuple

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from oncekey.core.events import Watch
from oncekey.core.retention import MAX_SECONDS
from oncekey.wire.rule import Rule

PREFIX = "IDEMPOTENCY_"
RETENTION = "django"
"""The retention class of keys that Django views take, unless a view names another."""

DEFAULTS: dict[str, Any] = {
    "IDEMPOTENCY_ATTACH_TIMEOUT_SECONDS": 30.0,
    "IDEMPOTENCY_DATABASE": "default",
    "IDEMPOTENCY_FAIL_OPEN": False,
    "IDEMPOTENCY_IN_FLIGHT": "conflict",
    "IDEMPOTENCY_KEY_TTL_HOURS": 24,
    "IDEMPOTENCY_LEASE_SECONDS": 15.0,
    "IDEMPOTENCY_MAX_REQUEST_BODY": 64 << 20,
    "IDEMPOTENCY_MAX_STORED_BODY": 1 << 20,
    "IDEMPOTENCY_OBSERVER": None,
    "IDEMPOTENCY_ORGANIZATION": None,
    "IDEMPOTENCY_REQUIRED": False,
    "IDEMPOTENCY_STORE_SERVER_ERRORS": False,
    "IDEMPOTENCY_TAKEOVER": "rerun",
}
_CHOICES = {
    "IDEMPOTENCY_IN_FLIGHT": ("conflict", "attach"),
    "IDEMPOTENCY_TAKEOVER": ("rerun", "refuse"),
}
_LONGEST_HOURS = MAX_SECONDS // 3600


class Fault(NamedTuple):
    """A setting that cannot work, and what to write instead."""

    setting: str
    message: str
    hint: str


@dataclass(frozen=True)
class Preferences:
    database: str
    ttl_seconds: float
    lease_seconds: float
    organization: Callable[[Any], Any] | None
    observer: Any
    """An `Observer`, or a `Watch`, for whoever counts."""
    rule: Rule


@lru_cache(maxsize=1)
def preferences() -> Preferences:
    """The settings in force. Raises `ImproperlyConfigured` for the first one that cannot work."""
    for fault in faults():
        raise ImproperlyConfigured(f"{fault.message} {fault.hint}")
    get = _value
    return Preferences(
        database=get("DATABASE"),
        ttl_seconds=get("KEY_TTL_HOURS") * 3600,
        lease_seconds=get("LEASE_SECONDS"),
        organization=_function_of(get("ORGANIZATION")),
        observer=_function_of(get("OBSERVER")),
        rule=Rule(
            key="required" if get("REQUIRED") else "optional",
            in_flight=get("IN_FLIGHT"),
            attach_timeout=get("ATTACH_TIMEOUT_SECONDS"),
            takeover=get("TAKEOVER"),
            retention=RETENTION,
            store_server_errors=get("STORE_SERVER_ERRORS"),
            max_stored_body=get("MAX_STORED_BODY"),
            max_request_body=get("MAX_REQUEST_BODY"),
            fail_open=get("FAIL_OPEN"),
        ),
    )


def faults() -> Iterator[Fault]:
    """Every setting that cannot work."""
    for name in DEFAULTS:
        value = _value(name.removeprefix(PREFIX))
        found = _fault_in(name, value)
        if found is not None:
            yield Fault(name, f"{name} is {value!r}.", found)


def unknown() -> Iterator[tuple[str, str]]:
    """Settings that nobody reads, each with the name that was probably meant, or an empty one."""
    for name in sorted(dir(settings)):
        if name.startswith(PREFIX) and name not in DEFAULTS:
            meant = get_close_matches(name, DEFAULTS, n=1, cutoff=0.5)
            yield name, meant[0] if meant else ""


def _value(name: str) -> Any:
    return getattr(settings, PREFIX + name, DEFAULTS[PREFIX + name])


def _fault_in(name: str, value: Any) -> str | None:
    """What to write instead; None when the value is fine."""
    if name in _CHOICES:
        return None if value in _CHOICES[name] else f"Use one of {', '.join(_CHOICES[name])}."
    default = DEFAULTS[name]
    if isinstance(default, bool):
        return None if isinstance(value, bool) else "Use True or False."
    if isinstance(default, int | float):
        return _fault_in_number(name, value)
    if name == "IDEMPOTENCY_DATABASE":
        known = ", ".join(sorted(settings.DATABASES))
        return None if value in settings.DATABASES else f"Use one of DATABASES: {known}."
    if name == "IDEMPOTENCY_OBSERVER" and isinstance(value, Watch):
        return None
    return _fault_in_function(value)


def _fault_in_number(name: str, value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "Use a number."
    if name == "IDEMPOTENCY_KEY_TTL_HOURS" and not 0 < value <= _LONGEST_HOURS:
        return f"Use hours above 0 and up to {_LONGEST_HOURS}."
    if name == "IDEMPOTENCY_LEASE_SECONDS" and value <= 0:
        return "Use seconds above 0."
    return None if value >= 0 else "Use 0 or more."


def _fault_in_function(value: Any) -> str | None:
    try:
        function = _function_of(value)
    except ImportError as error:
        return f"Use a function or the dotted path of one ({error})."
    return None if function is None or callable(function) else "Use a function of one request."


def _function_of(value: Any) -> Any:
    return import_string(value) if isinstance(value, str) else value
