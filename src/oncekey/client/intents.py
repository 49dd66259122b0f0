"""Where intents are kept until their answers are known. One name, one key, whoever asks first."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from oncekey.client.answer import Kept, Lines
from oncekey.core.fork import around_forks


class Frozen(NamedTuple):
    """A request as every attempt sends it. No line of it lets anybody in."""

    method: str
    url: str
    headers: Lines
    body: bytes
    fingerprint: bytes
    """Two requests with one fingerprint are the same."""


@dataclass(frozen=True, slots=True)
class Record:
    """One intent. `origin` is the server it is for: two servers never share a name."""

    origin: str
    name: str
    key: str
    created_at: int
    sent_at: int | None = None
    """When it may have been sent for the first time."""
    request: Frozen | None = None
    done_at: int | None = None
    answer: Kept | None = None
    """None also when it was too large to be remembered."""


class Intents(Protocol):
    """`now` in milliseconds. Whatever comes after `capture` carries the key: it changes nothing
    about an intent that was given up meanwhile, and captured anew."""

    def capture(self, origin: str, name: str, key: str, now: int, forget_before: int) -> Record:
        """The intent of that name; if there is none, a new one with this key. Those that were done
        before `forget_before` are no more."""

    def freeze(self, record: Record, request: Frozen, now: int) -> Record:
        """Keep what is about to be sent; on disk when this returns. Answers what is kept, which
        is somebody else's request if that was first."""

    def find(self, record: Record) -> Record | None:
        """What is kept of it by now; None when it was given up."""

    def settle(self, record: Record, answer: Kept | None, now: int) -> None:
        """Its answer is known. The first one counts."""

    def forget(self, record: Record) -> None:
        """As if it had not been."""

    def pending(self, origin: str) -> list[Record]:
        """Those whose answers are not known, oldest first."""

    def close(self) -> None: ...


class MemoryIntents:
    """For one process: what is pending is gone with it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: dict[tuple[str, str], Record] = {}
        around_forks(self, in_child=MemoryIntents._renew)

    def capture(self, origin: str, name: str, key: str, now: int, forget_before: int) -> Record:
        with self._lock:
            self._sweep(forget_before)
            return self._records.setdefault((origin, name), Record(origin, name, key, now))

    def freeze(self, record: Record, request: Frozen, now: int) -> Record:
        with self._lock:
            # Given up meanwhile by somebody else: it is captured again, with the key it had.
            bare = Record(record.origin, record.name, record.key, record.created_at)
            found = self._records.setdefault((record.origin, record.name), bare)
            if found.key == record.key and found.request is None:
                sent_at = now if record.sent_at is None else record.sent_at
                found = replace(found, request=request, sent_at=sent_at)
                self._records[record.origin, record.name] = found
            return found

    def settle(self, record: Record, answer: Kept | None, now: int) -> None:
        with self._lock:
            found = self._found(record)
            if found is not None and found.done_at is None:
                asked = found.request
                if answer is not None and asked is not None:
                    # What was asked is of no more use; an answer that is not kept is asked again.
                    asked = asked._replace(body=b"")
                self._records[record.origin, record.name] = replace(
                    found, request=asked, answer=answer, done_at=now
                )

    def find(self, record: Record) -> Record | None:
        with self._lock:
            return self._found(record)

    def forget(self, record: Record) -> None:
        with self._lock:
            if self._found(record) is not None:
                del self._records[record.origin, record.name]

    def pending(self, origin: str) -> list[Record]:
        with self._lock:
            return [
                each
                for each in self._records.values()
                if each.origin == origin and each.done_at is None
            ]

    def close(self) -> None:
        """Nothing is held."""

    def _found(self, record: Record) -> Record | None:
        found = self._records.get((record.origin, record.name))
        return found if found is not None and found.key == record.key else None

    def _renew(self) -> None:
        """In a forked child: whoever held the lock is not here."""
        self._lock = threading.Lock()

    def _sweep(self, before: int) -> None:
        old = [
            place
            for place, each in self._records.items()
            if each.done_at is not None and each.done_at < before
        ]
        for place in old:
            del self._records[place]
