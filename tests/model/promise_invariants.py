"""What is promised about promises, each by name. A promise of ours is a function of a state."""

from collections import Counter

from oncekey.core.execution import PromiseState, Status
from tests.model.explorer import by_name
from tests.model.promise_state import REQUESTS, State


def one_winner(state: State) -> bool:
    """A promise is settled once, and what it was settled with never changes."""
    settled = Counter(fact.promise for fact in state.facts if fact.what == "settled")
    return max(settled.values(), default=1) == 1


def accepted_is_delivered(state: State) -> bool:
    """What a provider was told to have resolved is what the workflow finds in its journal."""
    found = {promise.id: promise for promise in state.tables.promises}
    values = {entry[5] for entry in state.tables.journal}
    won = [fact for fact in state.facts if fact.what == "won" and fact.promise in found]
    return all(
        b'"%s"' % fact.who.encode() in values
        for fact in won
        if found[fact.promise].execution is not None
    )


def workflow_sees_the_winner(state: State) -> bool:
    """A workflow that has ended well has the value its promise was settled with, and no other."""
    execution = state.tables.execution
    bodies = {each.body for each in state.tables.promises if each.execution is not None}
    return execution.status != Status.SUCCEEDED or execution.result in bodies


def parked_is_not_lost(state: State) -> bool:
    """While a resolution is parked, it waits for its promise, or a promise was settled with it."""
    parked = {fact.who for fact in state.facts if fact.what == "parked" and fact.value > state.now}
    delivered = {each.settled_by for each in state.tables.promises}
    row = state.tables.parked
    return not parked or row is not None or bool(delivered & set(REQUESTS))


def same_request_same_answer(state: State) -> bool:
    """A request resolves one promise at most, and is never told the opposite when asked again."""
    return all(fact.what != "otherwise" for fact in state.facts)


def waiting_means_pending(state: State) -> bool:
    """No wake-up is lost: a workflow lies down only while what it waits for is open."""
    own = [each for each in state.tables.promises if each.execution is not None]
    waits = state.tables.execution.status == Status.WAITING
    return not waits or all(each.state == PromiseState.PENDING for each in own)


def fenced_runs_change_nothing(state: State) -> bool:
    """A run that was taken over writes nothing: no step, no wait, no end."""
    return all(fact.what != "harm" for fact in state.facts)


def replay_finds_its_promise(state: State) -> bool:
    """A workflow that is replayed finds the promise it made, and never a conflict with itself."""
    return all(fact.what != "denied" for fact in state.facts)


ALWAYS = by_name(
    one_winner,
    accepted_is_delivered,
    workflow_sees_the_winner,
    parked_is_not_lost,
    same_request_same_answer,
    waiting_means_pending,
    fenced_runs_change_nothing,
    replay_finds_its_promise,
)
ENDING = "EveryWaitEnds"
"""Whatever has gone wrong: once nothing more does, the workflow ends."""
NAMES = {*ALWAYS, ENDING}
