"""Tokens: secrets that complete one promise. Only their digests are kept."""

from __future__ import annotations

import re
import secrets
from hashlib import blake2b

_TOKEN = re.compile(r"ct_[A-Za-z0-9_-]{43}")


def new_token() -> str:
    """`ct_` and 256 random bits."""
    return "ct_" + secrets.token_urlsafe(32)


def digest_of(token: str) -> bytes:
    return blake2b(token.encode(), digest_size=32, person=b"oncekey-token").digest()


def is_token(text: str) -> bool:
    return _TOKEN.fullmatch(text) is not None
