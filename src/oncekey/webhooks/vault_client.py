"""The conversation with OpenBao or Vault, blocking.

Nothing its client says is passed on: errors of it hold the address, and maybe what was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from oncekey.core.errors import ConfigurationError, SecretsUnavailable

T = TypeVar("T")


class Token(NamedTuple):
    token: str

    def __repr__(self) -> str:
        return "Token()"


class AppRole(NamedTuple):
    role_id: str
    secret_id: str

    def __repr__(self) -> str:
        return "AppRole()"


class Entry(NamedTuple):
    data: Mapping[str, Any]
    version: int
    """0 when there never was anything."""

    def __repr__(self) -> str:
        return f"Entry(version={self.version})"


class VaultClient:
    """`timeout` is for each request, in seconds."""

    def __init__(
        self, url: str, login: Token | AppRole, *, mount: str = "secret", timeout: float = 3.0
    ) -> None:
        try:
            import hvac
            import requests
        except ImportError as error:
            raise ConfigurationError(
                "secrets in a vault need hvac; run: pip install 'oncekey[vault]'"
            ) from error
        self._hvac = hvac
        self._unreachable = requests.RequestException
        self._url = url
        self._login = login
        self._mount = mount
        self._timeout = timeout
        self._token = login.token if isinstance(login, Token) else ""

    def read(self, path: str) -> Entry:
        return self._talk(lambda client: self._read(client, path))

    def write(self, path: str, data: Mapping[str, Any], seen: int) -> bool:
        """Whether the entry was as `seen`; if not, nothing is written."""
        return self._talk(lambda client: self._write(client, path, data, seen))

    def _read(self, client: Any, path: str) -> Entry:
        try:
            found = client.secrets.kv.v2.read_secret_version(
                path, mount_point=self._mount, raise_on_deleted_version=False
            )
        except self._hvac.exceptions.InvalidPath:
            return Entry({}, 0)
        data = found["data"]
        return Entry(dict(data["data"] or {}), int(data["metadata"]["version"]))

    def _write(self, client: Any, path: str, data: Mapping[str, Any], seen: int) -> bool:
        try:
            client.secrets.kv.v2.create_or_update_secret(
                path, dict(data), cas=seen, mount_point=self._mount
            )
        except self._hvac.exceptions.InvalidRequest as error:
            if any("check-and-set" in each for each in error.errors or ()):
                return False
            raise
        return True

    def _talk(self, work: Callable[[Any], T]) -> T:
        errors = self._hvac.exceptions
        try:
            return self._once(work)
        except (errors.Forbidden, errors.Unauthorized):
            told = "the vault refused our credentials, or they may not use this path"
        except errors.VaultError as error:
            told = f"the vault answered with an error ({type(error).__name__})"
        except self._unreachable as error:
            told = f"the vault cannot be reached ({type(error).__name__})"
        except (KeyError, TypeError, ValueError):
            told = "the vault's answer is not one of KV version 2; look at webhooks.vault.mount"
        raise SecretsUnavailable(told)

    def _once(self, work: Callable[[Any], T]) -> T:
        """With a new login when the one there was has ended."""
        client = self._hvac.Client(self._url, token=self._token, timeout=self._timeout)
        try:
            if isinstance(self._login, Token):
                return work(client)
            if self._token:
                try:
                    return work(client)
                except self._hvac.exceptions.Forbidden:
                    client.token = ""
            client.auth.approle.login(self._login.role_id, self._login.secret_id)
            self._token = client.token
            return work(client)
        finally:
            client.adapter.close()
