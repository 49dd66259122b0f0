"""The object `oncekey.Execution`, one for each workflow or task."""

from __future__ import annotations

from typing import Any

from oncekey.stores.restate.objects import add, new_object
from oncekey.stores.restate.work import beginning, passing, settling, waiting

SERVICE = "oncekey.Execution"
_WRITES = (
    beginning.create,
    beginning.withdraw,
    beginning.advance,
    beginning.hand_back,
    beginning.pick,
    beginning.halt,
    waiting.hold,
    waiting.wait,
    waiting.registered,
    waiting.refuse,
    waiting.spawn,
    waiting.disown,
    waiting.add_token,
    waiting.unkey,
    settling.settle,
    settling.tell,
    settling.match,
    settling.trouble,
    settling.call,
    passing.tick,
    passing.ripen,
    passing.forget,
    passing.control,
)
# What a run asks for all the time: when a journal has grown large, it does not come with the call.
_OF_RUNS = (
    beginning.advance,
    waiting.hold,
    waiting.wait,
    waiting.registered,
    waiting.spawn,
)
LAZILY = "_lazily"
_READS = (beginning.load, beginning.find, beginning.journal, waiting.promise, passing.fork)


def execution_object() -> Any:
    made = new_object(SERVICE)
    for write in _WRITES:
        add(made, write.__name__, write)
    for write in _OF_RUNS:
        add(made, write.__name__ + LAZILY, write, lazy=True)
    for read in _READS:
        add(made, read.__name__, read, kind="shared")
    return made
