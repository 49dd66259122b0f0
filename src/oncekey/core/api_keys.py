"""API keys: who calls, by a secret of which only a digest is kept; and what is asked of a store."""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import sha256
from typing import Literal, NamedTuple

from oncekey.core.errors import InvalidInput
from oncekey.core.retention import MAX_SECONDS

Role = Literal["caller", "admin"]
"""A caller asks for work, an admin looks after it. Neither's key is good for the other."""

PREFIXES: dict[Role, str] = {"caller": "ok_", "admin": "oka_"}
MAX_LABEL = 200

# 32 bytes are 43 characters of base64url.
_SECRETS = {role: re.compile(prefix + r"[A-Za-z0-9_-]{43}") for role, prefix in PREFIXES.items()}
_ID = re.compile(r"ak_[0-9a-f]{16}")
_LOW_BITS = 21


class ApiKey(NamedTuple):
    """What is kept of a key. Times are milliseconds since 1970."""

    id: str
    tenant: str
    project: str
    subject: str
    label: str
    created_at: int
    expires_at: int | None = None
    revoked_at: int | None = None
    role: Role = "caller"

    def is_good(self, now: int) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class KeepApiKey(NamedTuple):
    """Answer: False when the id is somebody else's; then nothing is kept."""

    key: ApiKey
    digest: bytes


class FindApiKey(NamedTuple):
    """Answer: ApiKey, however it is by now, or None."""

    digest: bytes


class ListApiKeys(NamedTuple):
    """A page, newest first, of ids below `before`. Answer: list[ApiKey]."""

    tenant: str | None
    before: str | None = None
    limit: int = 100


class RevokeApiKey(NamedTuple):
    """Whoever is first sets the time. Answer: ApiKey, or None when there is none of that id."""

    id: str
    now: int


def new_id(now: int, randbits: Callable[[int], int]) -> str:
    """Ids sort as the time they were made at."""
    return f"ak_{now << _LOW_BITS | randbits(_LOW_BITS):016x}"


def is_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def digest_of(secret: str, role: Role = "caller") -> bytes | None:
    """What stands for a secret in a store; None for anything that cannot be one of that role."""
    # A fast digest will do: a secret is 256 random bits, and nobody can try them all.
    return sha256(secret.encode()).digest() if _SECRETS[role].fullmatch(secret) else None


def check_label(label: str) -> str:
    if len(label) > MAX_LABEL or not label.isprintable():
        raise InvalidInput(f"a label is printable and at most {MAX_LABEL} characters long")
    return label


def check_life(seconds: float) -> float:
    if not 0 < seconds <= MAX_SECONDS:
        raise InvalidInput(f"a life of {seconds} s is not between 0 and ten years")
    return seconds
