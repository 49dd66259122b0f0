"""`X-Schedule-Signature`: made by schedules, checked by whoever they call.

It is `t=<unix seconds>,v1=<hex>`, an HMAC-SHA256 over `{t}.{body}`; only bytes that were received
may be checked, never JSON that was written anew.
"""

from __future__ import annotations

import hmac
import re
import time
from collections.abc import Iterable

from oncekey.core.errors import ConfigurationError

HEADER = "X-Schedule-Signature"
TOLERANCE = 300.0
MIN_SECRET = 16

_MAX_HEADER = 1000
_TIME = re.compile(r"t=([0-9]{1,12})")
_SIGNATURE = re.compile(r"v1=([0-9a-f]{64})")


def sign(secret: str, body: bytes, seconds: int) -> str:
    """The header's value for a body that is sent at `seconds` since 1970."""
    return f"t={seconds},v1={_digest(check_secret(secret), seconds, body)}"


def verify_signature(
    secrets: str | Iterable[str],
    header: str | None,
    body: bytes,
    *,
    tolerance: float = TOLERANCE,
    now: float | None = None,
) -> bool:
    """Whether `body` was signed with one of `secrets`, at most `tolerance` seconds ago.

    Several secrets are for the time in which one is replaced by another.
    """
    candidates = [secrets] if isinstance(secrets, str) else list(secrets)
    if not candidates:
        raise ConfigurationError("there is no secret to verify a signature with")
    keys = [check_secret(each) for each in candidates]
    parts = [part.strip() for part in (header or "")[:_MAX_HEADER].split(",")]
    times = [int(found[1]) for part in parts if (found := _TIME.fullmatch(part))]
    signatures = [found[1] for part in parts if (found := _SIGNATURE.fullmatch(part))]
    if len(times) != 1:
        return False
    # Every pair is compared, so that the time taken says nothing about which of them fits.
    fits = [
        hmac.compare_digest(_digest(key, times[0], body), signature)
        for key in keys
        for signature in signatures
    ]
    current = time.time() if now is None else now
    return any(fits) and abs(current - times[0]) <= tolerance


def check_secret(secret: str) -> bytes:
    if len(secret) < MIN_SECRET:
        raise ConfigurationError(
            f"a secret for {HEADER} has at least {MIN_SECRET} characters; "
            "make one with: openssl rand -hex 32"
        )
    return secret.encode()


def _digest(key: bytes, seconds: int, body: bytes) -> str:
    return hmac.new(key, b"%d.%b" % (seconds, body), "sha256").hexdigest()
