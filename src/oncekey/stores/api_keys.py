"""API keys, as steps of named SQL."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from oncekey.core.api_keys import ApiKey, FindApiKey, KeepApiKey, ListApiKeys, RevokeApiKey
from oncekey.stores.requests import Row, Setting, Step, Steps

# Above every id.
_LAST = "ak_g"


def _keep(request: KeepApiKey, _: Setting) -> Generator[Step, list[Row], bool]:
    rows = yield "keep_api_key", {**request.key._asdict(), "digest": request.digest}
    return bool(rows)


def _find(request: FindApiKey, _: Setting) -> Generator[Step, list[Row], Any]:
    rows = yield "find_api_key", {"digest": request.digest}
    return ApiKey(*rows[0]) if rows else None


def _list(request: ListApiKeys, _: Setting) -> Generator[Step, list[Row], Any]:
    values = {**request._asdict(), "before": request.before or _LAST}
    return [ApiKey(*row) for row in (yield "list_api_keys", values)]


def _revoke(request: RevokeApiKey, _: Setting) -> Generator[Step, list[Row], Any]:
    rows = yield "revoke_api_key", request._asdict()
    return ApiKey(*rows[0]) if rows else None


PLANS: dict[type, Callable[[Any, Setting], Steps]] = {
    KeepApiKey: _keep,
    FindApiKey: _find,
    ListApiKeys: _list,
    RevokeApiKey: _revoke,
}
READS: frozenset[type] = frozenset({FindApiKey, ListApiKeys})
