"""Requests that were answered before, to the byte: their replay needs no second thought."""

from __future__ import annotations

from typing import Any, NamedTuple

from oncekey.core.model import Record
from oncekey.wire.problem import Response

MOST = 2048
# Longer bodies cost more to keep than to read again.
LONGEST_BODY = 4096
# What is held here is held beyond what the ledger counts of it.
LONGEST_ANSWER = 16 << 10


class Remembered(NamedTuple):
    digest: bytes
    record: Record
    response: Response


class Memo:
    """Only a shortcut to a record: whether that record still holds is for the ledger to say."""

    def __init__(self) -> None:
        self._known: dict[Any, Remembered] = {}
        self.get = self._known.get

    def put(self, request: Any, remembered: Remembered) -> None:
        self._known.pop(request, None)
        if len(remembered.response.body) > LONGEST_ANSWER:
            return
        self._known[request] = remembered
        while len(self._known) > MOST:
            self._known.pop(next(iter(self._known)), None)
