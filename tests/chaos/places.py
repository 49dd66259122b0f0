"""Where callers ask, and what is promised there when a process dies in the middle."""

from enum import Enum


class Mode(Enum):
    AT_LEAST_ONCE = "at-least-once"
    """Run again after a lapse: another effect needs a trouble of the server that had the first."""
    RECOVERED = "recovered"
    """Asked first what was done: a kill is no excuse, only a server that was taken for dead."""
    AT_MOST_ONCE = "at-most-once"
    EXACTLY_ONCE = "exactly-once"


MODES = {
    "/app/rerun": Mode.AT_LEAST_ONCE,
    "/app/attach": Mode.AT_LEAST_ONCE,
    "/app/refuse": Mode.AT_MOST_ONCE,
    "/app/recover": Mode.RECOVERED,
    "/app/within": Mode.EXACTLY_ONCE,
    "/bank/rerun": Mode.AT_LEAST_ONCE,
    "/bank/refuse": Mode.AT_MOST_ONCE,
    "/hooks/forwarded": Mode.AT_LEAST_ONCE,
}

# Troubles after which others may take a server for dead while it lives.
TAKEN_FOR_DEAD = frozenset({"freeze", "store", "store-line", "disk", "stall"})
# And those after which what it did last may be unknown, to it or to others.
INTERRUPTED = TAKEN_FOR_DEAD | {"kill", "bank-line"}

# Where it is done by a service behind: what was sent there may arrive after its sender was killed.
BEHIND = frozenset({"/bank/rerun", "/bank/refuse", "/hooks/forwarded"})
