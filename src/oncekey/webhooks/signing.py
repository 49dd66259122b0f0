"""What verifying and signing are made of. For whatever a stranger sent, nothing here raises but
`SignatureInvalid`."""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from urllib.parse import parse_qsl

from oncekey.core.errors import SignatureInvalid
from oncekey.webhooks.delivery import Delivery

TOLERANCE = 300.0
"""Seconds by which a timestamp may be off: what most providers ask for."""

# A provider that changes its secret sends two; more are somebody's attempt to keep us busy.
_MOST_SIGNATURES = 16
_MOST_FIELDS = 1000
_SECONDS = re.compile(r"[0-9]{1,15}")
_JSON_STARTS = (b"{", b"[")

Fields = Mapping[str, Sequence[str]]


def octets(text: str) -> bytes:
    """UTF-8, also of what UTF-8 cannot say: that is never equal to anything signed."""
    return text.encode("utf-8", "backslashreplace")


def header_octets(text: str) -> bytes:
    """A value of a header as it came."""
    return text.encode("latin-1", "backslashreplace")


def keys_of(secrets: Iterable[str]) -> list[bytes]:
    """Secrets that are used as they are written. An empty one is everybody's, so it is none."""
    return [octets(secret) for secret in secrets if secret.strip()]


def mac(key: bytes, text: bytes, algorithm: str = "sha256") -> bytes:
    return hmac.digest(key, text, algorithm)


def as_hex(digest: bytes) -> str:
    return digest.hex()


def as_base64(digest: bytes) -> str:
    return base64.b64encode(digest).decode()


def bytes_of_hex(text: str) -> bytes | None:
    try:
        return binascii.a2b_hex(text)
    except ValueError:
        return None


def bytes_of_base64(text: str) -> bytes | None:
    """With or without padding."""
    try:
        return base64.b64decode(
            text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), validate=True
        )
    except ValueError:
        return None


def signature_of_base64(text: str) -> bytes | None:
    """Only as it is written by everybody: bits that mean nothing would make two of one."""
    digest = bytes_of_base64(text)
    return digest if digest is not None and as_base64(digest) == text else None


def required(delivery: Delivery, header: str) -> str:
    value = delivery.header(header)
    if not value:
        raise SignatureInvalid(f"there is no header {header}; the provider sends it when it signs")
    return value


def is_equal(given: str, expected: str) -> bool:
    """As text: two spellings of one signature would be two deliveries to whoever counts them."""
    return hmac.compare_digest(octets(given), octets(expected))


def check(
    given: Sequence[str],
    text: bytes,
    keys: Iterable[bytes],
    *,
    encode: Callable[[bytes], str] = as_hex,
    algorithm: str = "sha256",
) -> None:
    """One of `given` is by one of `keys`. All are compared, so that time does not tell which."""
    found = False
    for key in keys:
        expected = encode(mac(key, text, algorithm))
        for each in bounded(given):
            found |= is_equal(each, expected)
    if not found:
        raise SignatureInvalid("the signature is by none of the secrets of this webhook")


def bounded(given: Sequence[str]) -> Sequence[str]:
    if len(given) > _MOST_SIGNATURES:
        raise SignatureInvalid(
            f"there are {len(given)} signatures, and at most {_MOST_SIGNATURES} are looked at"
        )
    return given


def seconds_of(text: str) -> int:
    if not _SECONDS.fullmatch(text):
        raise SignatureInvalid("the timestamp is not a whole number of seconds since 1970")
    return int(text)


def check_age(
    moment: float, now: float, *, past: float = TOLERANCE, future: float | None = TOLERANCE
) -> None:
    """Exactly `past` seconds ago is lately still; `None` allows any future."""
    age = now - moment
    if age > past or (future is not None and -age > future):
        when = f"{age:.0f} s old" if age > 0 else f"{-age:.0f} s ahead"
        raise SignatureInvalid(f"the timestamp is {when}, more than allowed; check both clocks")


def form_of(body: bytes) -> Fields | None:
    """The fields of a form, each with its values in order; None for what is not a form."""
    try:
        pairs = parse_qsl(
            body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
        )
    except ValueError:
        return None
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        fields.setdefault(name, []).append(value)
    return fields


def looks_like_json(body: bytes) -> bool:
    return body.lstrip(b" \t\r\n")[:1].startswith(_JSON_STARTS)


def sent(
    delivery: Delivery,
    headers: Mapping[str, str],
    *,
    url: str | None = None,
    body: bytes | None = None,
) -> Delivery:
    """The delivery with these headers in place of its own; it says what its body is."""
    body = delivery.body if body is None else body
    added = {name.lower().encode(): header_octets(value) for name, value in headers.items()}
    kept = [(name.lower(), value) for name, value in delivery.headers if name.lower() not in added]
    if all(name != b"content-type" for name, _ in kept):
        kind = (
            b"application/json" if looks_like_json(body) else b"application/x-www-form-urlencoded"
        )
        kept.insert(0, (b"content-type", kind))
    return delivery._replace(
        url=delivery.url if url is None else url, headers=(*kept, *added.items()), body=body
    )
