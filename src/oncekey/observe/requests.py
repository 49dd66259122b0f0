"""A line of the log for a request: how it was answered, and by which key. Never what was in it."""

from __future__ import annotations

import logging
import time
from typing import Any, Literal

from oncekey.core.events import Seen
from oncekey.core.flood import Flood
from oncekey.core.model import operation_id_of

log = logging.getLogger("oncekey.request")

Which = Literal["trouble", "all"]

_WELL = frozenset({"new", "replay", "passed"})
# Whoever is refused can have that a thousand times a second.
_MOST_TROUBLES = 120
"""Lines a minute, of each way at each endpoint."""


class RequestLog:
    def __init__(self, which: Which) -> None:
        self.tells_all = which == "all"
        self._flood = Flood(_steady, _MOST_TROUBLES, _tell_more)

    def write(self, seen: Seen, status: int, seconds: float) -> None:
        well = seen.way in _WELL
        if not self.tells_all and (well or not self._flood.admit((seen.way, seen.endpoint))):
            return
        level = logging.ERROR if seen.way == "failed" else logging.WARNING
        fields = fields_of(seen, status, seconds)
        log.log(logging.INFO if well else level, "request", extra=fields)


def fields_of(seen: Seen, status: int, seconds: float) -> dict[str, Any]:
    tenant, _, rest = seen.namespace.removeprefix("t-").partition(":")
    fields = {
        "endpoint": seen.endpoint,
        "status": status,
        "way": seen.way,
        "duration_ms": round(seconds * 1000, 3),
        "tenant": tenant,
        "project": rest.partition(":")[0],
        "idempotency_case": seen.case,
        "idempotency_key_namespaced": seen.key,
        "idempotency_source": seen.source,
        "idempotency_policy": seen.policy,
        "operation_id": operation_id_of(seen.operation) if seen.operation else "",
        "cache_hit": seen.way == "replay",
    }
    if seen.invocation:
        fields["restate_invocation_id"] = seen.invocation
        fields["restate_cache_hit"] = seen.way == "replay"
    if seen.span is not None:
        fields["trace_id"] = seen.span.trace_id
    return fields


def _steady() -> int:
    return time.monotonic_ns() // 1_000_000


def _tell_more(name: tuple[str, str], times: int) -> None:
    way, endpoint = name
    log.warning("more requests", extra={"endpoint": endpoint, "way": way, "times": times})
