"""Stacks as they were sampled: read, and summed up by the room in which a thread was."""

import re
from collections import Counter
from typing import NamedTuple

# What was on top, and where that is.
_FRAME = re.compile(r"(?P<function>.+) \((?P<file>[^()]*?)(?::\d+)?\)")
_LOOP = "the event loop: sockets, timers, wake-ups"
_SQLITE = "SQLite: statements, the log, waiting for the interpreter"
_BENCH = "those who call, and the service behind"
_OTHERS = "libraries"
# Where Python hands over to something that Python's stack does not show.
_HANDED_OVER = {"runners.py": _LOOP, "oncekey/stores/sqlite/session.py": _SQLITE}
_ROOMS = re.compile(r"oncekey/((?:edge|stores|durable)/(?:serving|sqlite|work|embedded)|\w+)[/.]")
_NAMES = {"uvicorn": "uvicorn", "bench": _BENCH}
# A thread that waits for something to do. The sampler takes some of them for busy ones.
_RESTING = re.compile(
    r"(_worker|Condition\.wait|Event\.wait|\w+Selector\.select|Writer\._take|SqliteBell\._run"
    r"|PostgresBell\._run|Queue\.get|QueueListener\.dequeue|Thread\.\w+) \(.*"
)


class Stack(NamedTuple):
    """From the outermost frame to the innermost, and how often it was seen."""

    frames: tuple[str, ...]
    seen: int


def stacks_of(folded: str) -> list[Stack]:
    """Of the threads that do something."""
    found = []
    for line in folded.splitlines():
        names, _, seen = line.rpartition(" ")
        frames = tuple(names.split(";"))
        if not _RESTING.fullmatch(frames[-1]):
            found.append(Stack(frames, int(seen)))
    return found


def rooms_of(stacks: list[Stack]) -> dict[str, float]:
    """The share of each room, of all samples."""
    seen: Counter[str] = Counter()
    for stack in stacks:
        seen[_room_of(stack.frames[-1])] += stack.seen
    total = sum(seen.values()) or 1
    return {room: count / total for room, count in seen.most_common()}


def _room_of(frame: str) -> str:
    found = _FRAME.fullmatch(frame)
    file = found["file"] if found else ""
    for end, told in _HANDED_OVER.items():
        if file.endswith(end):
            return told
    room = _ROOMS.search(file)
    if room is not None:
        return f"`{room[1]}`"
    return next((told for start, told in _NAMES.items() if file.startswith(start)), _OTHERS)


def named(frame: str) -> str:
    """A frame as a picture tells it: without the line."""
    found = _FRAME.fullmatch(frame)
    return found["function"] if found else frame
