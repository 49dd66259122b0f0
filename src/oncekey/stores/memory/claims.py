"""The table of claims, by digest and by number. The ledger and durable work share it."""

from __future__ import annotations

from oncekey.core.model import Link, Record
from oncekey.core.ports import Insert


class Claims:
    def __init__(self) -> None:
        self._by_digest: dict[bytes, Record] = {}
        self._digests: dict[int, bytes] = {}

    def at(self, digest: bytes) -> Record | None:
        return self._by_digest.get(digest)

    def of(self, number: int) -> Record | None:
        digest = self._digests.get(number)
        return None if digest is None else self._by_digest[digest]

    def all(self) -> list[Record]:
        """Oldest first, by number."""
        return sorted(self._by_digest.values(), key=lambda record: record.id)

    def add(self, insert: Insert, owner: int, link: Link | None = None) -> bool:
        """Claim a key nobody has. False when something else has the number."""
        if insert.id in self._digests:
            return False
        operation = insert.operation
        self._digests[insert.id] = insert.digest
        return self.put(
            Record(
                insert.id,
                operation.ref,
                operation.fingerprint,
                owner,
                1,
                operation.request_id,
                operation.retention,
                insert.created_at,
                insert.expires_at,
                link=link,
            )
        )

    def put(self, record: Record) -> bool:
        self._by_digest[self._digests[record.id]] = record
        return True

    def forget(self, number: int) -> bool:
        digest = self._digests.pop(number, None)
        return digest is not None and self._by_digest.pop(digest) is not None
