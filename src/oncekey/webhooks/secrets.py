"""The secrets of a webhook, and who keeps them. Several are good at once while one is rotated."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from oncekey.core.errors import ConfigurationError, InvalidInput, SecretsUnavailable
from oncekey.core.webhooks import StoredWebhook
from oncekey.webhooks.sealing import Sealer, key_id_in
from oncekey.webhooks.signing import is_equal

MAX_SECRETS = 8
# A certificate with those above it is the longest there is.
MAX_LENGTH = 16 << 10


class Secret(NamedTuple):
    text: str
    created_at: int
    until: int | None = None
    """When it is no longer good; None while nothing has taken its place."""
    webhook: str = ""
    """Whose it is, where several webhooks have their secrets in one place."""

    def __repr__(self) -> str:
        return f"Secret(created_at={self.created_at}, until={self.until})"

    def is_good(self, now: int) -> bool:
        return self.until is None or now < self.until


Ring = tuple[Secret, ...]
"""The secrets of a webhook, newest first."""
Change = Callable[[Ring], Ring]


class SecretKeeper(Protocol):
    async def read(self, webhook: StoredWebhook) -> Ring:
        """Raises `SecretsUnavailable`. Empty when there are none."""
        ...

    async def edit(self, webhook: StoredWebhook, change: Change) -> str:
        """Keep what `change` makes of the secrets there are; it may be asked several times.

        Answers what the webhook's row is to say about them.
        """
        ...

    async def forget(self, webhook: StoredWebhook) -> None:
        """The webhook is gone."""
        ...


class LocalSecrets:
    """Sealed, in the row of the webhook. `keys` is a key, or asks for them, newest first: once, and
    again when a secret is sealed with another. Whoever seals without one has `make` make it."""

    def __init__(
        self,
        keys: bytes | Callable[[], Sequence[bytes]],
        *,
        make: Callable[[], None] | None = None,
    ) -> None:
        self._keys = (lambda: (keys,)) if isinstance(keys, bytes) else keys
        self._make = make
        self._sealer: Sealer | None = None

    async def read(self, webhook: StoredWebhook) -> Ring:
        return self._open(webhook)

    async def edit(self, webhook: StoredWebhook, change: Change) -> str:
        kept = change(self._open(webhook))
        sealer = self._for_sealing()
        return json.dumps(
            [
                {
                    "sealed": sealer.seal(each.text, webhook.id),
                    "created_at": each.created_at,
                    "until": each.until,
                }
                for each in kept
            ]
        )

    async def forget(self, webhook: StoredWebhook) -> None:
        """They were in its row."""

    def _open(self, webhook: StoredWebhook) -> Ring:
        rows = json.loads(webhook.secrets)
        if not rows:
            return ()
        sealer = self._for_opening({key_id_in(row["sealed"]) for row in rows})
        return tuple(
            Secret(sealer.open(row["sealed"], webhook.id), row["created_at"], row["until"])
            for row in rows
        )

    def _for_opening(self, key_ids: set[str]) -> Sealer:
        if self._sealer is None or not key_ids <= set(self._sealer.key_ids):
            try:
                self._sealer = Sealer(self._keys())
            except ConfigurationError as error:
                raise SecretsUnavailable(str(error)) from error
        return self._sealer

    def _for_sealing(self) -> Sealer:
        """With the newest key there is by now."""
        sealer = Sealer(self._keys())
        if not sealer.key_ids and self._make is not None:
            self._make()
            sealer = Sealer(self._keys())
        if not sealer.key_ids:
            raise ConfigurationError("there is no key to seal secrets with")
        self._sealer = sealer
        return sealer


def check_secret(text: str) -> str:
    bare = text.strip()
    printable = text.replace("\n", "").isprintable()
    if not bare or len(text) > MAX_LENGTH or not printable or text.rstrip("\n") != bare:
        raise InvalidInput(
            f"a secret is printable text of at most {MAX_LENGTH} characters, without spaces "
            "around it"
        )
    return text


def added(ring: Ring, text: str, now: int, webhook_id: str) -> Ring:
    """With one more, and nothing changed about those there are."""
    return _bounded((Secret(check_secret(text), now, None, webhook_id), *good(ring, now)))


def rotated(ring: Ring, text: str, now: int, overlap: float, webhook_id: str) -> Ring:
    """With a new one; those there are end after `overlap` seconds, or when they would anyway.

    To rotate to the newest one changes nothing, so that it can be asked again.
    """
    if ring and ring[0].until is None and is_equal(text, ring[0].text):
        return ring
    end = now + round(overlap * 1000)
    ending = (each._replace(until=min(end, each.until or end)) for each in ring)
    return _bounded((Secret(check_secret(text), now, None, webhook_id), *good(ending, now)))


def good(ring: Iterable[Secret], now: int) -> Ring:
    return tuple(each for each in ring if each.is_good(now))


def _bounded(ring: Ring) -> Ring:
    if len(ring) > MAX_SECRETS:
        raise InvalidInput(
            f"there are {MAX_SECRETS} secrets already; wait until one of them ends, or end them "
            "all with --overlap 0s"
        )
    return ring
