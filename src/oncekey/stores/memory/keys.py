"""Keys that executions, promises, requests and events hold: no process's death lets them lapse."""

from __future__ import annotations

from oncekey.core.model import Kind, Link, Outcome, Record
from oncekey.core.ports import Gone, Insert
from oncekey.core.work import ENGINE
from oncekey.stores.memory.claims import Claims

_CARRIED_OUT = Outcome(Kind.VALUE, body=b"null")


class Keys:
    def __init__(self, claims: Claims) -> None:
        self._claims = claims
        self.at = claims.at
        self.of = claims.of
        self.forget = claims.forget

    def claim(self, insert: Insert, link: Link | None = None) -> Record | Gone | None:
        """Claim a key. None when it is the claimer's now, or was already; else who has it.

        Gone: something else has the number.
        """
        holder = self.at(insert.digest)
        if holder is not None and holder.id == insert.id and holder.owner == ENGINE:
            return None
        if holder is not None and not _is_past(holder, insert.created_at):
            return holder
        if holder is not None:
            self.forget(holder.id)
        return None if self._claims.add(insert, ENGINE, link) else Gone()

    def spend(self, insert: Insert, link: Link | None = None) -> Record | Gone | None:
        """Claim the key of a request that is carried out in the same breath, and so is over."""
        taken = self.claim(insert, link)
        if taken is None:
            self.settle(insert.id, _CARRIED_OUT, insert.created_at, insert.expires_at)
        return taken

    def used(self, insert: Insert | None) -> Record | None:
        """Who has the key, without claiming it."""
        holder = None if insert is None else self.at(insert.digest)
        if insert is None or holder is None or _is_past(holder, insert.created_at):
            return None
        return None if holder.id == insert.id else holder

    def settle(self, number: int, outcome: Outcome, now: int, expires_at: int) -> None:
        record = self.of(number)
        if record is not None and record.outcome is None:
            self._claims.put(
                record._replace(completed_at=now, expires_at=expires_at, outcome=outcome)
            )

    def link(self, number: int | None, promise: str) -> None:
        """The record of a request that was parked says which promise it was for in the end."""
        record = None if number is None else self.of(number)
        if record is not None:
            self._claims.put(record._replace(link=Link("promise", promise)))

    def forget_promises(self, now: int, limit: int) -> int:
        """Keys of promises end with their time, whatever became of the promise."""
        past = [
            record
            for record in self._claims.all()
            if record.link is not None
            and record.link.kind == "promise"
            and record.outcome is None
            and record.expires_at <= now
        ]
        past.sort(key=lambda record: record.expires_at)
        return sum(self.forget(record.id) for record in past[:limit])


def _is_past(record: Record, now: int) -> bool:
    """Whether the key can be used anew. What still runs under a key has it however long."""
    runs = record.outcome is None and record.link is not None and record.link.kind != "promise"
    return record.expires_at <= now and not runs
