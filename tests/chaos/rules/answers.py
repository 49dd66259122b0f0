"""What callers are told: one answer for each key, which nothing contradicts later."""

from collections.abc import Iterator

from tests.chaos.history import Answered, Effect
from tests.chaos.places import INTERRUPTED, MODES, Mode
from tests.chaos.story import Exchange, Slot, Story

_REUSED, _UNKNOWN = "idempotency-key-reused", "outcome-unknown"
# May be told to anybody at any time.
_ALWAYS = frozenset({"request-in-progress", "delivery-in-flight", _REUSED})
_TRANSIENT = frozenset({500, 502, 503, 504})


def one_answer(story: Story) -> Iterator[str]:
    """Everybody who is told an outcome is told the same, for the same request alone."""
    for slot, told in _outcomes(story):
        answers = sorted({f"{e.sent.body}: {e.status} {e.text}" for e in told})
        if len(answers) > 1:
            yield f"{slot} has several outcomes: {'; '.join(answers)}"


def one_operation(story: Story) -> Iterator[str]:
    """Everybody who is told an outcome is told the same operation."""
    for slot, told in _outcomes(story):
        ids = sorted({e.answered.operation for e in told if e.answered and e.answered.operation})
        if len(ids) > 1:
            yield f"{slot} is {' and '.join(ids)}"


def not_contradicted(story: Story) -> Iterator[str]:
    """Once somebody was told the outcome, whoever asks later is told it as well."""
    for slot, told in _outcomes(story):
        first = min(told, key=lambda e: e.ended)
        for later in story.slots[slot]:
            if later.sent.at > first.ended and _contradicts(first, later):
                yield (
                    f"{slot} was told {first.status} for body {first.sent.body}, and then call "
                    f"{later.sent.call} with body {later.sent.body} {later.status} {later.problem}"
                )


def backed_by_its_effect(story: Story) -> Iterator[str]:
    """An outcome tells of something that was done."""
    for slot, exchange, effect in _told_effects(story):
        if effect is None:
            yield f"{slot} was told {exchange.json['mark']}, which nobody did"


def no_answer_of_another(story: Story) -> Iterator[str]:
    """An outcome tells of what was done for this owner, this key and this body."""
    for slot, exchange, effect in _told_effects(story):
        if effect is None:
            continue
        if (effect.place, effect.who, effect.key) != slot:
            yield f"{slot} was told {effect.mark}, which was done for {effect.who} {effect.key}"
        elif effect.body != exchange.sent.body.strip('"'):
            yield f"{slot}, {exchange.sent.body}, was told {effect.mark}, which is {effect.body}"


def marked_as_replays(story: Story) -> Iterator[str]:
    """Only who ran it is told the outcome without the mark of a replay."""
    for slot, told in _outcomes(story):
        # What a provider is told has no such mark; a recovered outcome was run by nobody alive.
        if slot.place.startswith("/hooks") or MODES[slot.place] is Mode.RECOVERED:
            continue
        first = [str(e.sent.call) for e in told if e.answered and not e.answered.replayed]
        if len(first) > 1:
            yield f"{slot}: calls {', '.join(first)} are all told that they ran it"


def expected_answers(story: Story) -> Iterator[str]:
    """Nobody is told what the tables do not have, or of trouble where there was none."""
    for slot, exchanges in story.slots.items():
        if slot.place not in MODES:
            continue
        for each in exchanges:
            if each.answered is not None and not _is_expected(story, slot, each, each.answered):
                told = f"{each.status} {each.problem} {each.text[:200]}"
                yield f"{slot}: call {each.sent.call} was told {told}"


def forgeries_refused(story: Story) -> Iterator[str]:
    """What is not signed by its provider is refused, and does nothing."""
    for each in story.exchanges:
        if each.sent.body == "forged" and 0 < each.status < 300:
            yield f"call {each.sent.call}, a forgery, was told {each.status}"
    for effect in story.effects:
        if effect.body == "forged":
            yield f"{effect.mark} was done for a forgery"


def _outcomes(story: Story) -> Iterator[tuple[Slot, list[Exchange]]]:
    """Of each key that protects something: whoever was told how it ended."""
    for slot, exchanges in story.slots.items():
        told = [e for e in exchanges if e.status in {200, 201}]
        if told and slot.place in MODES:
            yield slot, told


def _told_effects(story: Story) -> Iterator[tuple[Slot, Exchange, Effect | None]]:
    known = {effect.mark: effect for effect in story.effects}
    for slot, told in _outcomes(story):
        for exchange in told:
            yield slot, exchange, known.get(exchange.json["mark"])


def _contradicts(first: Exchange, later: Exchange) -> bool:
    if later.answered is None or later.status in _TRANSIENT:
        return False
    if later.sent.body != first.sent.body:
        return later.problem != _REUSED
    return later.status not in {200, 201}


def _is_expected(story: Story, slot: Slot, each: Exchange, answer: Answered) -> bool:
    if each.sent.body == "forged":
        return answer.status in {401, 503}
    if answer.status in {200, 201} or answer.problem in _ALWAYS:
        return True
    if answer.problem == _UNKNOWN:
        return MODES[slot.place] is Mode.AT_MOST_ONCE
    if answer.status == 500 and '"fails"' in answer.body:
        return True
    # The rest is trouble, and has to have a reason; its effects last a while.
    servers = {exchange.sent.server for exchange in story.slots[slot]}
    return answer.status in _TRANSIENT | {409} and any(
        story.troubles.met(server, each.sent.at - 10, each.ended, INTERRUPTED) for server in servers
    )
