"""The line to a server: a client of httpx of this process, and of no other."""

from __future__ import annotations

import os
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Generic, TypeVar

import httpx

from oncekey.core.errors import ConfigurationError

H = TypeVar("H", bound=httpx.Client | httpx.AsyncClient)

_TIMEOUT = 30.0


class Line(Generic[H]):
    """Made with `options` of httpx, or brought by the caller.

    What is made keeps no cookies: one that comes with an answer that is lost would make the next
    attempt somebody else's, for servers that know callers by them.
    """

    def __init__(
        self, kind: type[H], base_url: str, brought: H | None, options: dict[str, Any]
    ) -> None:
        if brought is not None and options:
            raise ConfigurationError(
                f"{', '.join(sorted(options))}: give these to the httpx client that you bring"
            )
        if brought is not None and base_url and httpx.URL(base_url) != brought.base_url:
            raise ConfigurationError("the httpx client that you bring is for another server")
        self.owned = brought is None
        self.base_url = base_url or str(brought.base_url if brought is not None else "")
        self._kind = kind
        self._options = options
        self._process = os.getpid()
        self._http = self._made() if brought is None else brought
        self._inherited: list[H] = []
        """Those of a parent process, whose connections are not closed here."""

    def http(self) -> H:
        if self._process != os.getpid():
            self._after_fork()
        return self._http

    def _made(self) -> H:
        jar = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
        settings = {"base_url": self.base_url, "timeout": _TIMEOUT, "cookies": jar}
        return self._kind(**{**settings, **self._options})

    def _after_fork(self) -> None:
        """Two processes on one connection would get each other's answers."""
        if not self.owned:
            raise ConfigurationError(
                "the httpx client was brought before this process was forked: bring one of its own"
            )
        self._inherited.append(self._http)
        self._http, self._process = self._made(), os.getpid()
