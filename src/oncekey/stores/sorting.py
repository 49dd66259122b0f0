"""A group of requests, by what each needs; and what is answered when its rows all went in."""

from __future__ import annotations

from typing import Any

from oncekey.core.answers import Advanced, Awaited, Started
from oncekey.core.execution import Status
from oncekey.core.ports import Held, Insert, Settle
from oncekey.core.work import Advance, Await, Start
from oncekey.stores.requests import NOBODY
from oncekey.stores.work.bulk import Hot, is_bulk
from oncekey.stores.work.promises import with_key

FIRST = Held(1)
_ADVANCED = Advanced()


class Sorted:
    """One statement for claims and outcomes, one for durable work; the others need their own."""

    __slots__ = ("inserts", "is_plain", "others", "settles", "works")

    def __init__(self, requests: list[Any]) -> None:
        self.inserts: list[Insert] = []
        self.settles: list[Settle] = []
        self.works: list[Hot] = []
        self.others: list[Any] = []
        for request in requests:
            kind = type(request)
            if kind is Insert:
                self.inserts.append(request)
            elif kind is Settle:
                self.settles.append(request)
            elif is_bulk(request):
                self.works.append(request)
            else:
                self.others.append(request)
        self.is_plain = not self.others


def answer_of(request: Any, owner: int) -> Any:
    """To a request of one of the statements, whose rows all went in."""
    kind = type(request)
    if kind is Insert:
        return FIRST
    if kind is Start:
        return Started(owner if request.execution.status is Status.RUNNING else NOBODY)
    if kind is Await:
        waits = request.advance.waits is not None
        return Awaited(with_key(request.promise, request.insert), None, waits)
    return _ADVANCED if kind is Advance else True
