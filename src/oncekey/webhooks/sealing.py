"""Secrets made unreadable: AES-256-GCM, each bound to the webhook it belongs to.

A sealed secret names its key by a short id, so that keys can be changed one after the other.
"""

from __future__ import annotations

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from oncekey.core.errors import ConfigurationError, SecretsUnavailable

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
_FORM = "v1"
_NONCE_BYTES = 12
_BOUND = b"oncekey webhook secret\0"


class Sealer:
    """`keys` newest first: the first one seals, any of them opens."""

    def __init__(
        self, keys: Sequence[bytes], *, randbytes: Callable[[int], bytes] = os.urandom
    ) -> None:
        self._ciphers = {key_id_of(key): _cipher_of(key) for key in keys}
        self._randbytes = randbytes

    @property
    def key_ids(self) -> tuple[str, ...]:
        return tuple(self._ciphers)

    def seal(self, secret: str, webhook_id: str) -> str:
        key_id, cipher = next(iter(self._ciphers.items()))
        nonce = self._randbytes(_NONCE_BYTES)
        sealed = nonce + cipher.encrypt(nonce, secret.encode(), _BOUND + webhook_id.encode())
        return f"{_FORM}.{key_id}.{urlsafe_b64encode(sealed).decode()}"

    def open(self, sealed: str, webhook_id: str) -> str:
        from cryptography.exceptions import InvalidTag

        cipher = self._ciphers.get(key_id_in(sealed))
        if cipher is None:
            raise SecretsUnavailable(_other_key(sealed, webhook_id, self.key_ids))
        try:
            whole = urlsafe_b64decode(sealed.rsplit(".", 1)[1])
            nonce, rest = whole[:_NONCE_BYTES], whole[_NONCE_BYTES:]
            return cipher.decrypt(nonce, rest, _BOUND + webhook_id.encode()).decode()
        except (InvalidTag, ValueError):
            raise SecretsUnavailable(
                f"a secret of {webhook_id} was changed since it was sealed; give it a new one with "
                f"`oncekey webhooks rotate {webhook_id}`"
            ) from None


def key_id_of(key: bytes) -> str:
    return sha256(b"oncekey webhook key\0" + key).hexdigest()[:8]


def key_id_in(sealed: str) -> str:
    """Of the key a secret is sealed with; empty for what is not sealed."""
    form, _, rest = sealed.partition(".")
    return rest.partition(".")[0] if form == _FORM else ""


def _other_key(sealed: str, webhook_id: str, known: Sequence[str]) -> str:
    return (
        f"a secret of {webhook_id} is sealed with the key {key_id_in(sealed)!r}, and this process "
        f"has {', '.join(known) or 'none'}; give every process the same keys, newest first"
    )


def _cipher_of(key: bytes) -> AESGCM:
    if len(key) != KEY_BYTES:
        raise ConfigurationError(f"a key for webhooks is {KEY_BYTES} bytes long, not {len(key)}")
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError as error:
        raise ConfigurationError(
            "secrets of webhooks need the cryptography package; run: pip install 'oncekey[edge]'"
        ) from error
    return AESGCM(key)
