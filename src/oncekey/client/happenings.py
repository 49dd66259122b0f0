"""What a hook is told of, one value for each."""

from __future__ import annotations

from typing import NamedTuple

from oncekey.client.answer import Answer


class Captured(NamedTuple):
    """The intent has a key."""

    name: str
    key: str


class Attempted(NamedTuple):
    """The request is being sent."""

    name: str
    key: str
    attempt: int


class Retrying(NamedTuple):
    """There was no answer, or none for good; it is sent again after so many seconds."""

    name: str
    key: str
    attempt: int
    reason: str
    after: float


class Answered(NamedTuple):
    """The answer is known."""

    name: str
    key: str
    answer: Answer


class Failed(NamedTuple):
    """No answer came of it; the intent is pending unless that is of no use."""

    name: str
    key: str
    error: Exception


Happening = Captured | Attempted | Retrying | Answered | Failed
