"""How a process that Restate has called gets an execution, beside what is asked of any store."""

from __future__ import annotations

from typing import NamedTuple


class Pick(NamedTuple):
    """Take an execution that became READY under this dispatch: RUNNING here from now on, with the
    next fence. One that is RUNNING under it may be taken again by its owner, and by anybody when
    `gone` is its owner. Answer: Picked; Busy when another process has it; Lost when the dispatch is
    over. When `most` processes have ended under it (0: however many), it is PAUSED at `now`
    instead, or FAILED when it `fails`, and Lost."""

    id: int
    dispatch: int
    gone: int = 0
    most: int = 0
    fails: bool = False
    now: int = 0


class Busy(NamedTuple):
    """It is RUNNING under this very dispatch, in the process of that number."""

    owner: int
