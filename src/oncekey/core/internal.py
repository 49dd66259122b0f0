"""Case C: a handler whose source names no delivery. It runs for each of them, derives a token from
what it trusts and passes that on, so that the costly work behind it is done once."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

from oncekey.core.errors import InvalidInput
from oncekey.core.ledger import Ledger
from oncekey.core.scope import namespace_of

DERIVED = "key-present"
HIT = "handler-dedup-hit"
"""The event that observers are told: work that was done for an earlier delivery."""

_REPLAYED = "idempotent-replayed"


class Internal:
    """The tokens of one handler. `endpoint` is its name: two handlers never share a token."""

    def __init__(self, ledger: Ledger, endpoint: str, **options: Any) -> None:
        """`options` are those of `once`: `namespace`, `retention`, `takeover`, `wait`, …"""
        self._ledger = ledger
        self._endpoint = endpoint
        self._options = options

    def token(self, *signals: str | int) -> str:
        """A key that is the same for the same signals, and fits the header Idempotency-Key.

        Take signals that belong to the thing itself, such as the name of a file and its version.
        A time of arrival differs with every retry, and a digest of the body is the same for two
        things that only look alike.
        """
        if not signals or not all(type(each) in {str, int} and each != "" for each in signals):
            raise InvalidInput("a token is derived from one or more texts or numbers, none empty")
        # As JSON, so that no two lists of signals are written alike.
        text = json.dumps([self._endpoint, *signals], ensure_ascii=True)
        return "c-" + blake2b(text.encode(), digest_size=16).hexdigest()

    def once(self, token: str, function: Callable[..., Any], *args: Any) -> Any:
        """`ledger.once` under the token; work that was done before is counted."""
        ran, call = self._noting(function)
        self._tell(DERIVED, "C")
        result = self._ledger.once(token, call, *args, **self._with_endpoint())
        self._count(ran)
        return result

    async def aonce(self, token: str, function: Callable[..., Any], *args: Any) -> Any:
        ran, call = self._noting(function)
        self._tell(DERIVED, "C")
        result = await self._ledger.aonce(token, call, *args, **self._with_endpoint())
        self._count(ran)
        return result

    def headers(self, token: str) -> dict[str, str]:
        """For a request to a service that keeps keys itself."""
        return {"Idempotency-Key": token}

    def note(self, headers: Mapping[str, str]) -> bool:
        """Tell of that service's answer: whether it was a replay, which is then counted."""
        told = {name.lower(): value for name, value in headers.items()}
        replayed = told.get(_REPLAYED, "").strip().lower() == "true"
        if replayed:
            self._tell(HIT)
        return replayed

    def _with_endpoint(self) -> dict[str, Any]:
        return {"endpoint": self._endpoint, **self._options}

    def _noting(self, function: Callable[..., Any]) -> tuple[list[bool], Callable[..., Any]]:
        ran: list[bool] = []

        @functools.wraps(function)
        def call(*args: Any) -> Any:
            ran.append(True)
            return function(*args)

        if inspect.iscoroutinefunction(function):
            return ran, functools.wraps(function)(_awaiting(call))
        return ran, call

    def _count(self, ran: list[bool]) -> None:
        if not ran:
            self._tell(HIT)

    def _tell(self, event: str, detail: str = "") -> None:
        namespace = self._options.get("namespace") or namespace_of()
        self._ledger.observe(event, self._endpoint, namespace, detail)


def _awaiting(call: Callable[..., Any]) -> Callable[..., Any]:
    async def acall(*args: Any) -> Any:
        return await call(*args)

    return acall
