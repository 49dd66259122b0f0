"""What is decided about a key that is known. Pure: a record and a moment in, a value out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from oncekey.core.model import Operation, Record

if TYPE_CHECKING:
    from oncekey.core.claim import Claim


class Proceed(NamedTuple):
    """The caller holds the claim and must run the operation."""

    claim: Claim


class Replay(NamedTuple):
    """It is settled; this is everyone's answer."""

    record: Record


class Busy(NamedTuple):
    """Someone alive is running it."""

    record: Record


class Mismatch(NamedTuple):
    """Same key, other fingerprint; nothing of the record may be shown."""

    record: Record


class Unknown(NamedTuple):
    """The holder died and the operation may not be run again."""

    record: Record


class TakeOver(NamedTuple):
    """The holder died: take the claim with the next fence."""

    record: Record
    ask: bool
    """Ask the application's `recover` hook before running again."""


class Renew(NamedTuple):
    """The record is expired: the key is new."""

    record: Record


Decision = Proceed | Replay | Busy | Mismatch | Unknown
"""What a caller is told."""
Verdict = Replay | Busy | Mismatch | Unknown | TakeOver | Renew
"""What is to be done about a known key; the last two end in another decision."""


def decide(record: Record, lapsed: bool, operation: Operation, now: int) -> Verdict:
    """The one place where the fate of a known key is decided."""
    settled = record.outcome is not None
    # Before the fingerprint: an expired key is new, whatever it was used for.
    if (settled or lapsed) and record.expires_at <= now:
        return Renew(record)
    if record.fingerprint != operation.fingerprint:
        return Mismatch(record)
    if settled:
        return Replay(record)
    if not lapsed:
        return Busy(record)
    match operation.takeover:
        case "rerun":
            return TakeOver(record, ask=False)
        case "recover":
            return TakeOver(record, ask=True)
        case "refuse":
            return Unknown(record)
