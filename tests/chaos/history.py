"""What happened, told one event a line. Times are of the machine's steady clock, in seconds: all
processes share it, and no jump of a wall clock moves it."""

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec


class Sent(msgspec.Struct, tag="sent", frozen=True):
    """A caller asks. `who` is whose key it is, `body` which of several bodies it sends."""

    at: float
    call: int
    job: int
    place: str
    who: str
    key: str
    body: str
    server: str


class Answered(msgspec.Struct, tag="answered", frozen=True):
    at: float
    call: int
    job: int
    status: int
    problem: str = ""
    replayed: bool = False
    operation: str = ""
    body: str = "null"
    """JSON, as it was told."""


class Lost(msgspec.Struct, tag="lost", frozen=True):
    """No answer came: the line broke, or the caller had no more time."""

    at: float
    call: int
    job: int
    why: str


class Effect(msgspec.Struct, tag="effect", frozen=True):
    """Something was done. `mark` is drawn anew each time; `saw` is the mark it builds upon."""

    at: float
    job: int
    place: str
    who: str
    key: str
    body: str
    mark: str
    server: str = ""
    saw: str = ""


class Trouble(msgspec.Struct, tag="trouble", frozen=True):
    """What was done to a server, or to all of them where none is named."""

    at: float
    until: float
    what: str
    server: str = ""


class GaveUp(msgspec.Struct, tag="gave-up", frozen=True):
    """With everything mended and time to spare, a caller still had no answer for good."""

    at: float
    job: int
    place: str
    who: str
    key: str


class Left(msgspec.Struct, tag="left", frozen=True):
    """Found unfinished when nothing was under way any more."""

    at: float
    what: str
    job: int = -1


class Ended(msgspec.Struct, tag="ended", frozen=True):
    """A server ended without having been killed; `told` is the last it said."""

    at: float
    server: str
    told: str
    job: int = -1


Event = Ended | Sent | Answered | Lost | Effect | Trouble | GaveUp | Left

now = time.monotonic
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Event).decode


class Writer:
    """One write a line: lines of several processes never mix, and outlive a kill."""

    def __init__(self, file: Path) -> None:
        self._file = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def add(self, event: Event) -> None:
        os.write(self._file, _encode(event) + b"\n")

    def close(self) -> None:
        os.close(self._file)


def read(*files: Path) -> list[Event]:
    """All events of the files, in the order in which they happened."""
    events = [event for file in files if file.exists() for event in _lines(file)]
    return sorted(events, key=lambda event: event.at)


def write(file: Path, events: Iterable[Event]) -> None:
    file.write_bytes(b"".join(_encode(event) + b"\n" for event in events))


def _lines(file: Path) -> Iterator[Event]:
    with file.open("rb") as lines:
        for line in lines:
            # Of a process that was killed while it wrote, a part of a line is left: no event yet.
            if line.endswith(b"}\n"):
                yield _decode(line)
