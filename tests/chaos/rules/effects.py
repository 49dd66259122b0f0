"""What is done: once, or as often as the promise of its place allows and no oftener."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tests.chaos.history import Effect
from tests.chaos.places import BEHIND, INTERRUPTED, MODES, TAKEN_FOR_DEAD, Mode
from tests.chaos.story import Slot, Story

# So long after a trouble a server may still not know that it was taken for dead.
_UNAWARE = 10.0


def one_effect(story: Story) -> Iterator[str]:
    """A key has one effect; where a crash may repeat it, there was one."""
    for slot, effects in _protected(story):
        mode = MODES[slot.place]
        asked = min((e.sent.at for e in story.slots.get(slot, [])), default=0.0)
        for one, other in pairwise(effects):
            if not _excused(story, mode, one, other, asked):
                yield (
                    f"{slot} is {mode.value}, and was done as {one.mark} by {one.server} and as "
                    f"{other.mark} by {other.server}"
                )


def one_body(story: Story) -> Iterator[str]:
    """A key is for one request: nothing is done for another body under it."""
    for slot, effects in _protected(story):
        bodies = sorted({effect.body for effect in effects})
        if len(bodies) > 1:
            yield f"{slot} was done for bodies {' and '.join(bodies)}"


def only_what_was_asked(story: Story) -> Iterator[str]:
    """Every effect is somebody's who asked for it, under his own name."""
    for slot, effects in _protected(story):
        if slot not in story.slots:
            yield f"{effects[0].mark} was done for {slot}, which nobody asked for"


def finished_steps_stay_finished(story: Story) -> Iterator[str]:
    """A step that others build upon is not done again, unless by a server that was taken for dead
    and does not know it yet."""
    steps = [effect for effect in story.effects if effect.place == "step"]
    built_on = {effect.saw: effect for effect in steps if effect.saw}
    for first in steps:
        later = built_on.get(first.mark)
        for again in steps:
            if later is None or again.key != first.key or again.at <= later.at:
                continue
            if not story.troubles.met(again.server, first.at - _UNAWARE, again.at, TAKEN_FOR_DEAD):
                yield (
                    f"{first.key} was {first.mark} when {later.key} began, and was done again as "
                    f"{again.mark} by {again.server}"
                )


def steps_repeat_for_a_reason(story: Story) -> Iterator[str]:
    """A step that runs again was interrupted, or is run by a server that was taken for dead."""
    for slot, effects in _by_slot(story):
        if slot.place not in {"step", "task"}:
            continue
        for one, other in pairwise(effects):
            interrupted = story.troubles.met(one.server, one.at - 1, other.at, INTERRUPTED)
            if not interrupted and not story.troubles.met(
                other.server, one.at - _UNAWARE, other.at, TAKEN_FOR_DEAD
            ):
                yield (
                    f"{slot.key} was done as {one.mark} by {one.server} and as {other.mark} by "
                    f"{other.server}, and nothing had happened to either"
                )


def journal_never_changes(story: Story) -> Iterator[str]:
    """Whoever runs a step sees the same result of the one before."""
    for slot, effects in _by_slot(story):
        seen = sorted({effect.saw for effect in effects})
        if slot.place in {"step", "task"} and len(seen) > 1:
            yield f"{slot.key} saw {' and '.join(seen)}"


def _excused(story: Story, mode: Mode, one: Effect, other: Effect, asked: float) -> bool:
    match mode:
        case Mode.AT_MOST_ONCE | Mode.EXACTLY_ONCE:
            return False
        case Mode.AT_LEAST_ONCE:
            # Whose effect comes later may have begun before: taken for dead, it did not know, or
            # what it had sent was still on its way.
            late = INTERRUPTED if other.place in BEHIND else TAKEN_FOR_DEAD
            return story.troubles.met(
                one.server, asked, other.at, INTERRUPTED
            ) or story.troubles.met(other.server, asked, other.at, late)
        case Mode.RECOVERED:
            return any(
                story.troubles.met(each.server, asked, other.at, TAKEN_FOR_DEAD)
                for each in (one, other)
            )


def _protected(story: Story) -> Iterator[tuple[Slot, list[Effect]]]:
    for slot, effects in _by_slot(story):
        if slot.place in MODES:
            yield slot, effects


def _by_slot(story: Story) -> Iterator[tuple[Slot, list[Effect]]]:
    found: dict[Slot, list[Effect]] = defaultdict(list)
    for effect in story.effects:
        found[Slot(effect.place, effect.who, effect.key)].append(effect)
    yield from found.items()
