"""Twilio: `X-Twilio-Signature` over the URL and the fields of the form, or over a URL that has the
digest of the body. Its token header is not signed; SIDs and the ids of CloudEvents are.

A secret is the auth token, or a shared key as `sk:ID:sha256:KEY`: its form says how it signs.
"""

from __future__ import annotations

import hashlib
import re
import secrets as random
from collections.abc import Sequence
from typing import NamedTuple

from oncekey.core.errors import InvalidInput, SignatureInvalid
from oncekey.webhooks import identifiers, signing
from oncekey.webhooks.delivery import Delivery, Event, Item
from oncekey.webhooks.providers.twilio_fields import name_in
from oncekey.webhooks.signing import Fields

_SIGNATURE = "X-Twilio-Signature"
_SETTINGS = "X-Twilio-Webhooks-Signature-Settings"
_TOKEN = "I-Twilio-Idempotency-Token"  # noqa: S105 - the name of a header
_DIGEST = "bodySHA256"
_SHARED = re.compile(r"sk:([^:,]+):(sha1|sha256):(.+)", re.DOTALL)
_AUTHORITY = re.compile(r"(https?)://([^/?#]*)")
_PORT = re.compile(r":[0-9]+\Z")
_PORTS = {"http": ":80", "https": ":443"}


class Twilio:
    name = "twilio"

    def verify(self, delivery: Delivery, secrets: Sequence[str], now: float) -> Event:
        given = signing.required(delivery, _SIGNATURE)
        fields = _form_of(delivery)
        if fields is None:
            _check_digest(delivery)
        text = _check(delivery.url, fields or {}, given, secrets)
        token = delivery.header(_TOKEN)
        if token is None:
            return Event(delivery, _items_of(delivery, fields))
        items = (Item(identifiers.text_of(token, _TOKEN), delivery.body, signed=False),)
        # Where a field of a form ends is not signed, so one signature fits many bodies.
        return Event(delivery, items, covered=b"" if fields is None else text)

    def sign(self, delivery: Delivery, secret: str, now: float) -> Delivery:
        key = _key_of(secret)
        if key is None:
            raise InvalidInput("a secret is the auth token, or sk:ID:sha256:KEY of a shared key")
        url, fields = delivery.url, signing.form_of(delivery.body) or {}
        if signing.looks_like_json(delivery.body):
            mark = "&" if "?" in url else "?"
            url, fields = f"{url}{mark}{_DIGEST}={_sha256(delivery.body)}", {}
        signature = signing.mac(key.secret, _signed(url, fields), key.algorithm)
        headers = {_SIGNATURE: signing.as_base64(signature)}
        if key.id is not None:
            headers[_SETTINGS] = f"key={key.id},algorithm=HMAC_{key.algorithm.upper()}"
        return signing.sent(delivery, headers, url=url)

    def new_secret(self) -> str:
        return random.token_hex(16)


class _Key(NamedTuple):
    secret: bytes
    algorithm: str = "sha1"
    id: str | None = None
    """Of a shared key; Twilio names it in a header, which is not signed and so not believed."""


def _key_of(secret: str) -> _Key | None:
    if not secret.strip():
        return None
    if not secret.startswith("sk:"):
        return _Key(signing.octets(secret))
    found = _SHARED.fullmatch(secret)
    return _Key(signing.octets(found[3]), found[2], found[1]) if found else None


def _form_of(delivery: Delivery) -> Fields | None:
    """The fields that are signed; None where the digest of the body is, in the URL."""
    kind = (delivery.header("Content-Type") or "").partition(";")[0].strip().lower()
    if kind == "application/json":
        return None
    if _digest_in(delivery.url) is not None and kind != "application/x-www-form-urlencoded":
        return None
    fields = signing.form_of(delivery.body)
    # Without a field the signature would cover the URL only, and fit whatever stands in the body.
    if not fields and (delivery.body or _digest_in(delivery.url) is not None):
        raise SignatureInvalid("the body is not the form that it is said to be")
    return fields


def _check_digest(delivery: Delivery) -> None:
    digest = _digest_in(delivery.url)
    if digest is None:
        raise SignatureInvalid(f"the URL has no {_DIGEST}, which signs a body that is no form")
    if not signing.is_equal(digest, _sha256(delivery.body)):
        raise SignatureInvalid(f"{_DIGEST} in the URL is not the digest of the body")


def _check(url: str, fields: Fields, given: str, secrets: Sequence[str]) -> bytes:
    """What is signed: Twilio names the port in some of its products only."""
    found = None
    for key in filter(None, map(_key_of, secrets)):
        for candidate in _spellings_of(url):
            text = _signed(candidate, fields)
            signature = signing.as_base64(signing.mac(key.secret, text, key.algorithm))
            found = text if signing.is_equal(given, signature) else found
    if found is None:
        raise SignatureInvalid("the signature is by none of the secrets, or for another URL")
    return found


def _spellings_of(url: str) -> list[str]:
    """With its port, without, and with that of its scheme."""
    found = _AUTHORITY.match(url)
    if found is None:
        return [url]
    bare = _PORT.sub("", found[2])
    port = ":443" if found[1] == "https" else ":80"
    authorities = {found[2], bare, bare + port} if bare == found[2] else {found[2], bare}
    return [f"{found[1]}://{each}{url[found.end() :]}" for each in sorted(authorities)]


def _signed(url: str, fields: Fields) -> bytes:
    values = (name + value for name in sorted(fields) for value in sorted(set(fields[name])))
    return signing.octets(url + "".join(values))


def _sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def _query_of(url: str) -> Fields:
    return signing.form_of(signing.octets(url.partition("#")[0].partition("?")[2])) or {}


def _digest_in(url: str) -> str | None:
    return next(iter(_query_of(url).get(_DIGEST, ())), None)


def _items_of(delivery: Delivery, fields: Fields | None) -> tuple[Item, ...]:
    if fields is None:
        return _cloud_events_in(delivery.body)
    # Asked with GET, it has its fields in the URL.
    identifier = name_in(fields if delivery.body else _query_of(delivery.url))
    return (Item(identifier, delivery.body),)


def _cloud_events_in(body: bytes) -> tuple[Item, ...]:
    event = identifiers.json_of(body)
    if identifiers.member_of(event, "specversion") is not None:
        return identifiers.batch_of([body], "id")
    return identifiers.batch_of(identifiers.slices_of(body), "id")
