"""The ledger's protocol with one thing wrong, and the promise that this breaks."""

from typing import Any, NamedTuple

from oncekey.core.decision import Unknown, Verdict, decide
from oncekey.core.model import Operation, Record
from oncekey.core.ports import Release
from tests.model.ledger import LedgerModel
from tests.model.ledger_state import X, Y
from tests.model.ledger_tables import STATEMENTS, Rows, Transaction, Values


class Mutant(NamedTuple):
    wrong: str
    breaks: str
    steps: int
    """How many it takes, at least, until it shows."""
    model: Any


def saying(name: str, statement: Any, **fields: Any) -> LedgerModel:
    """The model with another statement under the name."""
    return LedgerModel(statements={**STATEMENTS, name: statement}, **fields)


# -- statements that forget a condition ----------------------------------------------------------


def _as_the_holder(name: str) -> Any:
    """Whoever writes is taken for whoever holds the claim."""

    def statement(now: Transaction, values: Values) -> Rows:
        claim = now.claim
        if claim is None:
            return []
        held = {"id": claim.id, "fence": claim.fence, "owner": claim.owner}
        return STATEMENTS[name](now, values | held)

    return statement


def _at_any_time(name: str) -> Any:
    return lambda now, values: STATEMENTS[name](now, values | {"now": 99})


# -- decisions that forget a case ----------------------------------------------------------------


def _without_the_fingerprint(
    record: Record, lapsed: bool, operation: Operation, now: int
) -> Verdict:
    return decide(record, lapsed, operation._replace(fingerprint=record.fingerprint), now)


def _without_the_outcome(record: Record, lapsed: bool, operation: Operation, now: int) -> Verdict:
    return Unknown(record) if record.outcome else decide(record, lapsed, operation, now)


def _without_the_rule(record: Record, lapsed: bool, operation: Operation, now: int) -> Verdict:
    return decide(record, lapsed, operation._replace(takeover="rerun"), now)


STRANGERS: dict[str, Any] = {"fingerprints": (X, X, Y)}
SETTLE, RELEASE, ABANDON = (_as_the_holder(name) for name in ("settle", "release", "abandon"))
SWEEP, REPLACE = (_at_any_time(name) for name in ("sweep", "forget_expired"))
FENCED, ALONE, ONE = "FencedWritesChangeNothing", "OneEffectWhileHeld", "OneAnswer"
STRANGE, ENDS = "MismatchNeverRuns", "EveryClaimEnds"

MUTANTS = [
    Mutant("Settle without the fence", FENCED, 9, saying("settle", SETTLE)),
    Mutant("Release without the fence", FENCED, 3, saying("release", RELEASE)),
    Mutant("Abandon without the owner", FENCED, 6, saying("abandon", ABANDON, faults=2)),
    Mutant("Take overtakes an Abandon", ALONE, 10, LedgerModel(in_turn=False, faults=2)),
    Mutant("the living count as dead", ALONE, 3, LedgerModel(is_gone=lambda state, owner: True)),
    Mutant("it runs before the commit", "EffectIsClaimed", 1, LedgerModel(runs_early=True)),
    Mutant("it answers before the commit", "AnswerIsDurable", 3, LedgerModel(answers_early=True)),
    Mutant("a sweep takes what is kept", ONE, 10, saying("sweep", SWEEP, expires=True)),
    Mutant("Replace takes what is kept", ONE, 13, saying("forget_expired", REPLACE, expires=True)),
    Mutant(
        "decide sees no outcome", "NeverContradicted", 5, LedgerModel(decide=_without_the_outcome)
    ),
    Mutant(
        "decide sees no fingerprint",
        STRANGE,
        5,
        LedgerModel(decide=_without_the_fingerprint, **STRANGERS),
    ),
    Mutant("any winner will do", STRANGE, 10, LedgerModel(compares=False, purges=1, **STRANGERS)),
    Mutant(
        "what was taken over is released",
        "OneRequest",
        11,
        LedgerModel(gives_back=Release, **STRANGERS),
    ),
    Mutant(
        "decide sees no rule",
        "NoEffectAfterRefusal",
        7,
        LedgerModel("refuse", decide=_without_the_rule),
    ),
    Mutant("nobody asks the hook", "RecoverRepeatsNothing", 7, LedgerModel("recover", asks=False)),
    Mutant("leases never lapse", ENDS, 2, LedgerModel(lapses=False)),
    Mutant("nobody undoes a claim in doubt", ENDS, 1, LedgerModel(undoes=False)),
]
