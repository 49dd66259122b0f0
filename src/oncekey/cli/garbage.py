"""What a server does about garbage: it looks for it seldom."""

from __future__ import annotations

import gc

# So many more objects than were freed, before the youngest are looked through; by default 700. The
# requests under way have thousands, and would be looked through again and again while they last.
# Not more than that: a connection that is closed is garbage with all that was sent by it.
_YOUNGEST = 3_000
_YOUNGER, _OLD = 20, 20


def collect_seldom() -> None:
    """Once everything is built that lasts as long as the server: that is never looked at again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNGEST, _YOUNGER, _OLD)
