"""The calls that one attempt of an operation makes, and the key of each: the same at every attempt,
another for every call. Nothing of the operation can be read from them."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from hashlib import blake2b
from typing import NamedTuple


class Place(NamedTuple):
    """Which of the calls to a site it is, counted from 1."""

    site: str
    number: int
    digest: bytes
    """Of what is sent, to know it again."""


class Outgoing:
    """A call is known by its site, and by how many came before it.

    One that had no answer, and is made again, is no other call: it has the same place. So an
    attempt that had to repeat a call counts like one that had not.
    """

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._unanswered: dict[tuple[str, bytes], dict[Place, None]] = {}
        self._drawn: dict[tuple[str, str], Place] = {}

    def place(self, site: str, digest: bytes, drawn: str = "") -> Place:
        """`drawn` is the key that a library drew for this call, and repeats when it retries."""
        with self._lock:
            known = self._drawn.get((site, drawn))
            if known is not None:
                self._unanswered.get((site, known.digest), {}).pop(known, None)
                return known
            place = self._take(site, digest)
            if drawn:
                self._drawn[site, drawn] = place
            return place

    def _take(self, site: str, digest: bytes) -> Place:
        again = self._unanswered.get((site, digest))
        if again:
            first = min(again)
            del again[first]
            return first
        self._counts[site] += 1
        return Place(site, self._counts[site], digest)

    def lost(self, place: Place) -> None:
        """It was not answered, or not for good: whoever makes it again has its place."""
        with self._lock:
            self._unanswered.setdefault((place.site, place.digest), {})[place] = None

    def key(self, place: Place, secret: bytes = b"") -> str:
        """In the shape of a random UUID, as some services insist on."""
        site = place.site.encode()
        text = b"%d:%b%d:%b%d" % (len(self._seed), self._seed, len(site), site, place.number)
        digest = blake2b(text, digest_size=16, key=secret, person=b"oncekey-outbound")
        return str(uuid.UUID(bytes=digest.digest(), version=4))
