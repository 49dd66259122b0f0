"""A request of the edge on its way through Restate, and what comes back of it."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import shake_256
from operator import xor
from typing import Literal, NamedTuple

import msgspec

from oncekey.core.model import Headers, Operation, Outcome, Record, Ref
from oncekey.core.scope import Scope

HANDLER = "forward"
MARK = b"x-oncekey-claim"
"""A line that goes with the envelope: whose call it is, for whoever looks at it while it runs."""
LARGEST_REQUEST = 4 << 20
LARGEST_ANSWER = 8 << 20
"""What an envelope carries. Restate keeps all of it in its log."""

Told = Literal["ran", "replay", "mismatch", "claimed", "elsewhere"]
"""`claimed`: somebody holds the key who asks the service behind himself. `elsewhere`: whoever was
called performs no requests of this route."""

_MARK = re.compile(rf'"{MARK.decode()}","value":"[0-9a-f]{{16}}\.([\w=-]+)"', re.ASCII)


class Mark(NamedTuple):
    """What is known of a call that is under way."""

    nonce: str
    number: int
    ref: Ref
    fingerprint: bytes
    request_id: str
    created_at: int

    @property
    def record(self) -> Record:
        """As far as there is one before the end."""
        _, number, ref, fingerprint, request_id, at = self
        return Record(number, ref, fingerprint, 0, 1, request_id, "", at, at)


class Envelope(msgspec.Struct, array_like=True, frozen=True):
    nonce: str
    """Of one caller: by it he knows whether an answer is that to his own call."""
    number: int
    namespace: str
    endpoint: str
    key: str
    fingerprint: bytes
    request_id: str
    retention: str
    kept: int
    """For how many milliseconds a final answer is kept."""
    created_at: int
    method: bytes
    target: bytes
    lines: Headers
    """For the service behind. Credentials are never among them."""
    body: bytes
    secret: bytes = b""
    """Seals what of the answer must not be kept. Restate forgets it with the end of the call."""

    @property
    def ref(self) -> Ref:
        return Ref(Scope(self.namespace, self.endpoint), self.key)

    @property
    def mark(self) -> bytes:
        """Begins with the number, so that it can be searched for."""
        told = Mark(
            self.nonce, self.number, self.ref, self.fingerprint, self.request_id, self.created_at
        )
        return b"%016x.%b" % (self.number, urlsafe_b64encode(encode(told)))

    def abandoned(self) -> Record:
        """The record of it, when nobody knows how it ended: the next one with the key takes it
        over, as he would after a crash."""
        return Record(
            self.number, self.ref, self.fingerprint, 0, 1, self.request_id, self.retention,
            self.created_at, self.created_at + self.kept,
        )  # fmt: skip

    def settled(self, outcome: Outcome, now: int) -> Record:
        """The record of it, once it has this outcome."""
        return Record(
            self.number, self.ref, self.fingerprint, 0, 1, self.request_id, self.retention,
            self.created_at, now + self.kept, now, outcome,
        )  # fmt: skip


class First(NamedTuple):
    """What only the caller gets whose call it was."""

    status: int
    headers: Headers
    body: bytes | None
    """None when it is that of the outcome."""
    sealed: bytes = b""
    """Lines that are not kept, such as cookies."""


class Ran(NamedTuple):
    """How the service behind was asked: `outcome` is None when a retry may ask it again, `first`
    when its answer is more than an envelope carries."""

    outcome: Outcome | None
    first: First | None
    doubtful: bool = False
    """It was asked and broke off, and the route lets a retry ask it again."""


class Reply(msgspec.Struct, array_like=True, frozen=True):
    kind: Told
    nonce: str
    number: int = 0
    request_id: str = ""
    expires_at: int = 0
    outcome: Outcome | None = None
    first: First | None = None

    def record(self, operation: Operation) -> Record:
        """As far as a replay of it goes."""
        ref, fingerprint, _, retention, _ = operation
        return Record(
            self.number, ref, fingerprint, 0, 1, self.request_id, retention, 0, self.expires_at,
            self.expires_at, self.outcome,
        )  # fmt: skip


encode = msgspec.msgpack.Encoder().encode
envelope_of = msgspec.msgpack.Decoder(Envelope).decode
_mark_of = msgspec.msgpack.Decoder(Mark).decode
_lines_of = msgspec.msgpack.Decoder(Headers).decode
reply_of = msgspec.msgpack.Decoder(Reply).decode


def mark_in(journal: str) -> Mark | None:
    """The mark of a call, from the beginning of its journal."""
    found = _MARK.search(journal)
    return None if found is None else _mark_of(urlsafe_b64decode(found[1]))


def seal(lines: Headers, secret: bytes) -> bytes:
    """Each secret is for one answer only."""
    return _mixed(encode(lines), secret) if lines else b""


def unseal(sealed: bytes, secret: bytes) -> Headers:
    return _lines_of(_mixed(sealed, secret)) if sealed else ()


def _mixed(data: bytes, secret: bytes) -> bytes:
    stream = shake_256(secret).digest(len(data))
    return bytes(map(xor, data, stream))


def shared_key(digest: bytes, fingerprint: bytes) -> str:
    """By which Restate itself sees that calls are the same."""
    return f"{digest.hex()}.{fingerprint.hex()}"
