"""That everything comes to an end, and nothing else does."""

from collections.abc import Iterator

from tests.chaos.places import TAKEN_FOR_DEAD
from tests.chaos.story import Slot, Story


def nobody_stuck(story: Story) -> Iterator[str]:
    """With everything mended, every key has an answer for good, and nothing is left unfinished."""
    for each in story.gave_up:
        slot = Slot(each.place, each.who, each.key)
        yield f"{slot} never had an answer for good"
    for left in story.left:
        yield left.what


def servers_live(story: Story) -> Iterator[str]:
    """A server ends when it is killed, or cannot begin for want of its store, and never else."""
    for end in story.ended_servers:
        if not story.troubles.met(end.server, end.at - 20, end.at, TAKEN_FOR_DEAD):
            yield f"{end.server} ended and said: {end.told}"
