"""The shortest history that shows a violation: whatever can be left out is left out."""

from collections.abc import Sequence

from tests.chaos.check import check
from tests.chaos.history import Event, Trouble
from tests.chaos.rules import Violation


def shortest(events: Sequence[Event], violation: Violation) -> list[Event]:
    """No event of it can be taken away without the same evidence being gone."""
    kept = [e for e in events if isinstance(e, Trouble) or e.job == violation.job]
    size = max(1, len(kept) // 2)
    # Halves first, then smaller pieces: most of what happened has nothing to do with it.
    while True:
        start, before = 0, len(kept)
        while start < len(kept):
            rest = kept[:start] + kept[start + size :]
            if violation in check(rest):
                kept = rest
            else:
                start += size
        if size == 1 and len(kept) == before:
            return kept
        size = max(1, size // 2)
