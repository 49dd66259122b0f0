"""Server-sent events that are kept: they go out as they come, the last one waits for the store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from asgiref.sync import sync_to_async

from oncekey.core.claim import Claim
from oncekey.core.ledger import Ledger
from oncekey.core.model import Kind, Outcome
from oncekey.integrations.django.exchange import headers_of
from oncekey.integrations.django.ledgers import is_inside
from oncekey.wire.exchange import outcome_of
from oncekey.wire.rule import Rule


def keep_events(response: Any, ledger: Ledger, claim: Claim, rule: Rule) -> None:
    """Put ourselves between a streaming response and its reader."""
    kept = _Events(response, rule)
    chunks = response.streaming_content
    if response.is_async:
        response.streaming_content = _atee(chunks, kept, claim, blocking=is_inside(ledger))
    else:
        response.streaming_content = _tee(chunks, kept, claim)


class _Events:
    """What went out so far, as long as it may be kept."""

    def __init__(self, response: Any, rule: Rule) -> None:
        self._status = response.status_code
        self._headers = headers_of(response)
        self._rule = rule
        self._chunks: list[bytes] = []
        self._size = 0

    def add(self, chunk: bytes) -> bytes:
        self._size += len(chunk)
        if self._size <= self._rule.max_stored_body:
            self._chunks.append(chunk)
        return chunk

    def outcome(self) -> Outcome:
        if self._size > self._rule.max_stored_body:
            return Outcome(Kind.UNKEPT, self._status)
        return outcome_of(self._status, self._headers, b"".join(self._chunks), self._rule)


def _tee(chunks: Iterator[bytes], kept: _Events, claim: Claim) -> Iterator[bytes]:
    held = b""
    try:
        for chunk in chunks:
            if held:
                yield held
            held = kept.add(chunk)
        claim.settle(kept.outcome())
        yield held
    except Exception:
        if not claim.concluded:
            claim.release()
        raise
    finally:
        # The reader went away: nobody knows how far it came.
        claim.abandon()


async def _atee(
    chunks: AsyncIterator[bytes], kept: _Events, claim: Claim, *, blocking: bool
) -> AsyncIterator[bytes]:
    held = b""
    try:
        async for chunk in chunks:
            if held:
                yield held
            held = kept.add(chunk)
        outcome = kept.outcome()
        await (sync_to_async(claim.settle)(outcome) if blocking else claim.asettle(outcome))
        yield held
    except Exception:
        if not claim.concluded:
            await (sync_to_async(claim.release)() if blocking else claim.arelease())
        raise
    finally:
        claim.abandon()
