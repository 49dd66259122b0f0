"""Secrets that live in OpenBao or Vault: KV version 2, at `{tenant}:{project}:{provider}`.

The entry has the secret in one field, a text or a list with the newest first. What we write there
says beside it, under `oncekey`, whose each secret is and when it ends; what others write need not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from oncekey.core.clock import Clock, SystemClock
from oncekey.core.errors import SecretsUnavailable
from oncekey.core.webhooks import StoredWebhook
from oncekey.webhooks.secrets import MAX_SECRETS, Change, Ring, Secret
from oncekey.webhooks.vault_client import AppRole, Token, VaultClient

T = TypeVar("T")

_ABOUT = "oncekey"
_ATTEMPTS = 5
_THREADS = 4
# Several webhooks may have their secrets in one place.
_MOST = 4 * MAX_SECRETS
# A vault that is away is not asked again by every delivery.
_REST = 1000


class _Known(NamedTuple):
    ring: Ring | None
    trouble: str
    until: float
    """By the steady clock."""


class VaultSecrets:
    """What was read is believed for `cache` seconds; after that nothing goes without the vault.

    `timeout` is for one request to it, in seconds.
    """

    def __init__(
        self,
        url: str,
        login: Token | AppRole,
        *,
        mount: str = "secret",
        field: str = "secret",
        timeout: float = 3.0,
        cache: float = 10.0,
        clock: Clock | None = None,
    ) -> None:
        self._client = VaultClient(url, login, mount=mount, timeout=timeout)
        self._field = field
        # A login, what was asked for, and what is written on it.
        self._patience = 3 * timeout
        self._cache = cache * 1000
        self._clock: Clock = clock or SystemClock()
        self._known: dict[str, _Known] = {}
        self._turns: dict[str, asyncio.Lock] = {}
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="oncekey-vault")

    async def read(self, webhook: StoredWebhook) -> Ring:
        path = path_of(webhook)
        async with self._turns.setdefault(path, asyncio.Lock()):
            known = self._known.get(path)
            if known is None or known.until <= self._clock.steady():
                known = self._known[path] = await self._look(path)
        if known.ring is None:
            raise SecretsUnavailable(known.trouble)
        return _of(webhook, known.ring)

    async def edit(self, webhook: StoredWebhook, change: Change) -> str:
        def on(ring: Ring) -> Ring:
            others = tuple(each for each in ring if each.webhook not in {"", webhook.id})
            return change(_of(webhook, ring)) + others

        await self._change(path_of(webhook), on)
        return "[]"

    async def forget(self, webhook: StoredWebhook) -> None:
        """Its own secrets; what others wrote stays."""

        def on(ring: Ring) -> Ring:
            return tuple(each for each in ring if each.webhook != webhook.id)

        await self._change(path_of(webhook), on)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    # -- the steps behind the verbs ------------------------------------------------------

    async def _look(self, path: str) -> _Known:
        asked_at = self._clock.steady()
        try:
            entry = await self._ask(lambda: self._client.read(path))
            ring = ring_of(entry.data, self._field)
        except SecretsUnavailable as error:
            return _Known(None, f"{path}: {error}", self._clock.steady() + _REST)
        return _Known(ring, "", asked_at + self._cache)

    async def _change(self, path: str, on: Change) -> None:
        try:
            await self._ask(lambda: self._write(path, on))
        except SecretsUnavailable as error:
            raise SecretsUnavailable(f"{path}: {error}") from None
        finally:
            self._known.pop(path, None)

    def _write(self, path: str, on: Change) -> None:
        """Unless somebody else writes meanwhile: then anew, on what is there then."""
        for _ in range(_ATTEMPTS):
            entry = self._client.read(path)
            before = ring_of(entry.data, self._field)
            after = on(before)
            data = {**entry.data, **data_of(after, self._field)}
            if after == before or self._client.write(path, data, entry.version):
                return
        raise SecretsUnavailable("others keep writing to the same place; try again")

    async def _ask(self, work: Callable[[], T]) -> T:
        """In a thread: the client knows no other way to wait."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._patience):
                return await loop.run_in_executor(self._threads, work)
        except TimeoutError:
            raise SecretsUnavailable("the vault did not answer in time") from None


def path_of(webhook: StoredWebhook) -> str:
    """None of its parts can hold a slash or a colon."""
    return f"{webhook.tenant}:{webhook.project}:{webhook.provider}"


def ring_of(data: Mapping[str, Any], field: str) -> Ring:
    """Raises `SecretsUnavailable` for what cannot be a secret, without telling it."""
    value = data.get(field, [])
    texts = value if isinstance(value, list) else [value]
    if len(texts) > _MOST or not all(isinstance(each, str) and each for each in texts):
        raise SecretsUnavailable(
            f"the field {field!r} must be a text or a list of at most {_MOST} texts, newest first"
        )
    about = data.get(_ABOUT)
    # Somebody else has written since: what is beside it is no longer about these.
    if not isinstance(about, list) or len(about) != len(texts):
        about = [{}] * len(texts)
    return tuple(_secret_of(text, each) for text, each in zip(texts, about, strict=True))


def data_of(ring: Ring, field: str) -> dict[str, Any]:
    texts = [each.text for each in ring]
    about = [
        {"webhook": each.webhook, "created_at": each.created_at, "until": each.until}
        for each in ring
    ]
    return {field: texts[0] if len(texts) == 1 else texts, _ABOUT: about}


def _secret_of(text: str, about: Any) -> Secret:
    told = about if isinstance(about, dict) else {}
    created_at, until, webhook = (told.get(name) for name in ("created_at", "until", "webhook"))
    return Secret(
        text,
        created_at if isinstance(created_at, int) else 0,
        until if isinstance(until, int) else None,
        webhook if isinstance(webhook, str) else "",
    )


def _of(webhook: StoredWebhook, ring: Ring) -> Ring:
    """Its own, and then those that are everybody's: what we wrote came after them."""
    own = tuple(each for each in ring if each.webhook == webhook.id)
    return own + tuple(each for each in ring if not each.webhook)
