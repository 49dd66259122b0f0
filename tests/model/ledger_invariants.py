"""What the ledger promises, each by name. A promise is a function of a state."""

from collections import Counter

from oncekey.core.model import Takeover
from tests.model.explorer import Invariant, by_name
from tests.model.ledger_state import Runs, State, lasting_effects


def _over(state: State) -> set[int]:
    return {fact.id for fact in state.facts if fact.what == "over"}


def one_answer(state: State) -> bool:
    """Whoever asks with a key while its answer is kept is told the same outcome."""
    told = {(fact.id, fact.by, fact.value) for fact in state.facts if fact.what == "told"}
    each = Counter((number, by) for number, by, _ in told)
    current = Counter(by for number, by, _ in told if number not in _over(state))
    return max([*each.values(), *current.values()], default=1) == 1


def one_effect_while_held(state: State) -> bool:
    """While a process holds a claim and is alive, nobody else is in the handler."""
    running = [each for each in state.processes if isinstance(each.phase, Runs)]
    return sum(not each.excused for each in running) <= 1


def fenced_writes_change_nothing(state: State) -> bool:
    """What is written about a claim by anybody who does not hold it changes nothing."""
    return all(fact.what != "harm" for fact in state.facts)


def effect_is_claimed(state: State) -> bool:
    """Nothing is done before the claim is committed."""
    claimed = {(fact.id, fact.fence) for fact in state.facts if fact.what == "claimed"}
    return all((fact.id, fact.fence) in claimed for fact in state.facts if fact.what == "effect")


def answer_is_durable(state: State) -> bool:
    """No outcome is told to anybody before it is committed."""
    kept = {(fact.id, fact.value) for fact in state.facts if fact.what == "kept"}
    return all((fact.id, fact.value) in kept for fact in state.facts if fact.what == "told")


def never_contradicted(state: State) -> bool:
    """Once an outcome was told, and while it is kept, nobody is told that it is unknown."""
    return all(fact.what != "contradicted" for fact in state.facts)


def mismatch_never_runs(state: State) -> bool:
    """Who asks for something else under the same key neither runs it nor sees its answer."""
    claims = {(fact.id, fact.by) for fact in state.facts if fact.what == "claimed"}
    ran = {(fact.id, fact.by) for fact in state.facts if fact.what == "effect"}
    told = {(fact.value[:1], fact.by[:1]) for fact in state.facts if fact.what == "told"}
    fits = all(one != other or mine == his for one, mine in ran for other, his in claims)
    return fits and all(value == asked for value, asked in told)


def one_request(state: State) -> bool:
    """What may have been done for one request keeps its key from being used for another."""
    return len({fact.by for fact in lasting_effects(state)}) <= 1


def no_effect_after_refusal(state: State) -> bool:
    """With `refuse`, an operation has its effect at most once, whatever dies or stands still."""
    return _most_effects(state) <= 1


def recover_repeats_nothing(state: State) -> bool:
    """With `recover`, an effect is repeated only if a process stood still, never by a crash."""
    return state.stood_still or _most_effects(state) <= 1


def _most_effects(state: State) -> int:
    effects = Counter(fact.id for fact in state.facts if fact.what == "effect")
    return max(effects.values(), default=0)


ALWAYS = by_name(
    one_answer,
    one_effect_while_held,
    fenced_writes_change_nothing,
    effect_is_claimed,
    answer_is_durable,
    never_contradicted,
    mismatch_never_runs,
    one_request,
)
WITH_REFUSE = by_name(no_effect_after_refusal)
WITH_RECOVER = by_name(recover_repeats_nothing)
ENDING = "EveryClaimEnds"
"""Whatever has gone wrong: once nothing more does, whoever asks gets an answer in the end."""
NAMES = {*ALWAYS, *WITH_REFUSE, *WITH_RECOVER, ENDING}


def of(takeover: Takeover) -> dict[str, Invariant]:
    match takeover:
        case "rerun":
            return ALWAYS
        case "refuse":
            return ALWAYS | WITH_REFUSE
        case "recover":
            return ALWAYS | WITH_RECOVER
