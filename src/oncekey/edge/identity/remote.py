"""What identities are asked of over HTTP: bounded in size and time, and asked where it was declared
or nowhere."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from oncekey.core.errors import ConfigurationError, IdentityUnavailable

if TYPE_CHECKING:
    import httpx

_MOST_CONNECTIONS = 64


class Remote:
    """Redirects are not followed, and proxies of the environment are not used."""

    def __init__(
        self, *, timeout: float, most: int, client: httpx.AsyncClient | None = None
    ) -> None:
        self._timeout = timeout
        self._most = most
        self._client = client
        self._own: httpx.AsyncClient | None = None
        self._closed = False

    async def get(self, url: str) -> bytes:
        """The body of a 200. Raises `IdentityUnavailable` for anything else."""
        return await self._ask("GET", url, {}, b"")

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> bytes:
        """The same; neither headers nor body appear in an error."""
        return await self._ask("POST", url, headers, body)

    async def close(self) -> None:
        self._closed = True
        if self._own is not None:
            own, self._own = self._own, None
            await own.aclose()

    async def _ask(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> bytes:
        import httpx

        where = _where(url)
        if self._closed:
            raise IdentityUnavailable(f"{where} is not asked: the edge is being closed")
        try:
            async with asyncio.timeout(self._timeout):
                return await self._read(method, url, headers, body)
        except TimeoutError:
            raise IdentityUnavailable(f"{where} did not answer in {self._timeout:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise IdentityUnavailable(f"{where} not reached: {type(error).__name__}") from None

    async def _read(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> bytes:
        client = self._client or self._open()
        # Packed answers can be far larger than what is counted here.
        lines = {"Accept": "application/json", "Accept-Encoding": "identity", **headers}
        async with client.stream(
            method,
            url,
            content=body,
            headers=lines,
            timeout=self._timeout,
            follow_redirects=False,
        ) as answer:
            if answer.status_code != 200:
                moved = ", a redirect, which is not followed" if answer.is_redirect else ""
                raise IdentityUnavailable(f"{_where(url)} answered {answer.status_code}{moved}")
            read = bytearray()
            async for chunk in answer.aiter_raw():
                read += chunk
                if len(read) > self._most:
                    raise IdentityUnavailable(f"{_where(url)} sent more than {self._most} bytes")
            return bytes(read)

    def _open(self) -> httpx.AsyncClient:
        if self._own is None:
            import httpx

            limits = httpx.Limits(max_connections=_MOST_CONNECTIONS, max_keepalive_connections=8)
            self._own = httpx.AsyncClient(trust_env=False, limits=limits)
        return self._own


def check_address(url: str, setting: str, *, insecure: bool = False) -> str:
    """`https`, or plain `http` within this machine, unless told that the network is safe."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise ConfigurationError(f"{setting}: {url!r} is no address: {error}") from None
    if parts.scheme not in {"http", "https"} or not host or parts.username is not None:
        raise ConfigurationError(f"{setting} must be an address such as https://host/path")
    if parts.scheme == "http" and not insecure and not _is_this_machine(host):
        raise ConfigurationError(
            f"{setting}: {url} is plain http, and whoever is on the way could answer for {host}; "
            "use https"
        )
    return url


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _where(url: str) -> str:
    """Without the query, which may hold secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"
