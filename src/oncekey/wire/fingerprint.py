"""What makes two requests with one key the same request. By value, not by bytes, where it can."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact, Overflow
from functools import lru_cache
from hashlib import blake2b
from math import isinf
from sys import float_info
from typing import Any, Literal
from urllib.parse import unquote_to_bytes

import msgspec

from oncekey.core.errors import ConfigurationError
from oncekey.core.model import NO_FINGERPRINT

# So many digits of a decimal number survive in a float, whatever they are.
_FLOAT_DIGITS = 15


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """`value` (default), `bytes`, `none`, or only the named JSON `fields` (`a.b` reaches in)."""

    mode: Literal["value", "bytes", "none", "fields"] = "value"
    fields: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.mode == "fields") != bool(self.fields):
            raise ConfigurationError("fingerprint mode 'fields' needs fields, and only it has them")

    @classmethod
    def of_fields(cls, *fields: str) -> Fingerprint:
        return cls("fields", fields)

    def of(
        self,
        method: str,
        path: bytes,
        query: bytes,
        content_type: bytes,
        body: bytes | BodyDigest,
    ) -> bytes:
        """16 bytes; method, path and query always count unless the mode is `none`."""
        mode = self.mode
        if mode == "none":
            return NO_FINGERPRINT
        if type(body) is not bytes:
            assert isinstance(body, BodyDigest)
            canonical = body.canonical()
        elif mode == "value":
            canonical = _canonical(content_type, body)
        elif mode == "bytes":
            canonical = b"b" + body
        else:
            canonical = _picked(body, self.fields)
        return blake2b(_head(method, path, query) + canonical, digest_size=16).digest()


@lru_cache(maxsize=256)
def _head(method: str, path: bytes, query: bytes) -> bytes:
    """All but the body, lengths in front to keep the parts apart."""
    verb, pairs = method.encode(), _sorted_pairs(query)
    return b"%d,%d,%d;%b%b%b" % (len(verb), len(path), len(pairs), verb, path, pairs)


def _canonical(content_type: bytes, body: bytes) -> bytes:
    """The body by value. Each form has its own first letter, so that no two can be mistaken."""
    form = _form_of(content_type)
    if form == "json":
        return canonical_json(body)
    if form == "form":
        return b"f" + _sorted_pairs(body)
    return _multipart(content_type, body) if form == "multipart" else b"b" + body


def canonical_json(body: bytes) -> bytes:
    """JSON by value: neither the order of keys nor white space counts, and 1.0 is 1."""
    try:
        return b"j" + _encode(_decode(body))
    except _UNREADABLE:
        # Not JSON, or nested beyond reason: the bytes are all there is to compare.
        return b"b" + body


@lru_cache(maxsize=256)
def _form_of(content_type: bytes) -> str:
    kind = content_type.partition(b";")[0].strip().lower()
    if kind == b"application/json" or kind.endswith(b"+json"):
        return "json"
    forms = {b"application/x-www-form-urlencoded": "form", b"multipart/form-data": "multipart"}
    return forms.get(kind, "")


# Of a number that is not 0, however small.
_SOMETHING = re.compile("-?[0.]*[1-9]").match


def _number(text: str) -> float | int | msgspec.Raw:
    """1, 1.0 and 1e0 are one value; what a float cannot hold stays exact."""
    if len(text) > _FLOAT_DIGITS + 1:
        exact = _exact(text)
        if len(exact.as_tuple().digits) > _FLOAT_DIGITS:
            return msgspec.Raw(str(exact).encode())
    value = float(text)
    if isinf(value) or (abs(value) < float_info.min and _SOMETHING(text)):
        return msgspec.Raw(str(_exact(text)).encode())
    return int(value) if value.is_integer() and abs(value) < 1 << 53 else value


def _exact(text: str) -> Decimal:
    """Raises an arithmetic error for what is beyond even the bounds of a decimal number."""
    wide = Context(prec=len(text), Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[Inexact, Overflow])
    return wide.create_decimal(text).normalize(wide)


_decode = msgspec.json.Decoder(float_hook=_number).decode
_encode = msgspec.json.Encoder(order="sorted").encode
_UNREADABLE = (msgspec.MsgspecError, ValueError, ArithmeticError, RecursionError)


def _picked(body: bytes, fields: Sequence[str]) -> bytes:
    try:
        value = _decode(body)
        return b"p" + _encode([_pick(value, field) for field in fields])
    except _UNREADABLE:
        return b"b" + body


def _pick(value: Any, field: str) -> Any:
    """[found] or []: a field that is absent differs from one that is null."""
    for name in field.split("."):
        if not isinstance(value, dict) or name not in value:
            return []
        value = value[name]
    return [value]


def _sorted_pairs(query: bytes) -> bytes:
    """`b=2&a=1` as pairs ordered by name; values of one name keep their order."""
    pairs = [pair.partition(b"=") for pair in query.split(b"&") if pair]
    plain = [(_plain(name), _plain(value)) for name, _, value in pairs]
    plain.sort(key=lambda pair: pair[0])
    return b"".join([b"%d:%s%d:%s" % (len(n), n, len(v), v) for n, v in plain])


def _plain(text: bytes) -> bytes:
    if b"%" in text or b"+" in text:
        return unquote_to_bytes(text.replace(b"+", b" "))
    return text


def _multipart(content_type: bytes, body: bytes) -> bytes:
    digest = BodyDigest(content_type)
    digest.feed(body)
    return digest.canonical()


class BodyDigest:
    """A body digested piece by piece, for those too large to hold.

    Multipart bodies are cut at their boundary, which clients draw anew for every attempt: what
    lies between counts, the boundary itself does not.
    """

    def __init__(self, content_type: bytes) -> None:
        boundary = _boundary(content_type)
        self._marker = b"--" + boundary if boundary else b""
        self._tail = b""
        self._part = blake2b(digest_size=16)
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> None:
        if not self._marker:
            self._part.update(chunk)
            return
        *whole, rest = (self._tail + chunk).split(self._marker)
        for piece in whole:
            self._part.update(piece)
            self._parts.append(self._part.digest())
            self._part = blake2b(digest_size=16)
        # The end may hold the first bytes of the next boundary.
        keep = min(len(rest), len(self._marker) - 1)
        self._part.update(rest[: len(rest) - keep])
        self._tail = rest[len(rest) - keep :]

    def canonical(self) -> bytes:
        last = self._part.copy()
        last.update(self._tail)
        return b"h" + b"".join([*self._parts, last.digest()])


def _boundary(content_type: bytes) -> bytes:
    kind, *parameters = content_type.split(b";")
    if kind.strip().lower() != b"multipart/form-data":
        return b""
    for parameter in parameters:
        name, _, value = parameter.strip().partition(b"=")
        if name.strip().lower() == b"boundary":
            return value.strip().strip(b'"')
    return b""
