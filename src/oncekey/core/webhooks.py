"""Webhooks as a store keeps them, and what is asked of it. Secrets in here are sealed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

from oncekey.core.errors import InvalidInput

Repeats = Literal["refuse", "allow"]
"""What becomes of a body that comes again under another identifier."""

_ID = re.compile(r"wh_[A-Za-z0-9]{24,64}")
_PROVIDER = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
# 30 letters of five bits each: nobody finds a webhook by trying.
_LENGTH = 30


class StoredWebhook(NamedTuple):
    """One row. Times are milliseconds since 1970."""

    id: str
    tenant: str
    project: str
    provider: str
    follows: str
    """What follows a delivery, as `webhooks.then` writes it."""
    label: str
    repeats: str
    secrets: str
    """As the keeper of secrets wants it; of no use without its key."""
    version: int
    created_at: int
    updated_at: int


class KeepWebhook(NamedTuple):
    """Answer: False when the id is another's; then nothing is kept."""

    webhook: StoredWebhook


class FindWebhook(NamedTuple):
    """Answer: StoredWebhook or None."""

    id: str


class ListWebhooks(NamedTuple):
    """A page, newest first, of those before the one with this time and id.

    Answer: list[StoredWebhook].
    """

    tenant: str | None = None
    before: tuple[int, str] | None = None
    limit: int = 100


class ChangeWebhook(NamedTuple):
    """Put `webhook`, with a new version, in place of the one with the version `seen`.

    Its tenant, project, provider and age never change. Answer: whether it was as seen.
    """

    webhook: StoredWebhook
    seen: int


class DropWebhook(NamedTuple):
    """Answer: whether there was one."""

    id: str


def new_webhook_id(randbits: Callable[[int], int]) -> str:
    """Says nothing about whose it is."""
    return "wh_" + "".join(_LETTERS[randbits(5)] for _ in range(_LENGTH))


def is_webhook_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def check_provider_name(name: str) -> str:
    if not _PROVIDER.fullmatch(name):
        raise InvalidInput(f"provider {name!r} must be a-z, 0-9, '-' or '_', 63 at most")
    return name
