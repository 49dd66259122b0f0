"""The resolution of promises with one thing wrong, and the promise of ours that this breaks."""

from typing import Any

from oncekey.core.execution import PromiseState, Status
from tests.model.ledger_mutants import Mutant
from tests.model.promise_tables import STATEMENTS, Rows, Transaction, Values, nothing
from tests.model.promises import PromiseModel


def saying(name: str, statement: Any, **fields: Any) -> PromiseModel:
    """The model with another statement under the name."""
    return PromiseModel(statements={**STATEMENTS, name: statement}, **fields)


def _cancel_what_is_settled(now: Transaction, values: Values) -> Rows:
    for promise in now.promises.values():
        now.promises[promise.id] = promise._replace(state=PromiseState.CANCELLED)
    return []


def _park_nothing(now: Transaction, values: Values) -> Rows:
    return [(values["expires_at"],)]


def _drop_what_is_parked(now: Transaction, values: Values) -> Rows:
    now.parked = None
    return []


def _keep_no_request_key(now: Transaction, values: Values) -> Rows:
    """The request is carried out, and nobody remembers it."""
    del now.claims[values["id"]]
    return [(values["id"],)]


def _lie_down_in_any_case(now: Transaction, values: Values) -> Rows:
    return STATEMENTS["lie_down"](now, values | {"wakes": now.execution.wakes})


def _wake_nobody(now: Transaction, values: Values) -> Rows:
    now.change(wakes=now.execution.wakes + 1)
    return [(now.execution.status,)]


def _pick_up_with_the_same_fence(now: Transaction, values: Values) -> Rows:
    fence = now.execution.fence
    rows = STATEMENTS["pick_up"](now, values)
    now.change(fence=fence)
    return rows


def _pick_up_only_what_is_ready(now: Transaction, values: Values) -> Rows:
    return STATEMENTS["pick_up"](now, values) if now.execution.status == Status.READY else []


def _end_with_something_else(now: Transaction, values: Values) -> Rows:
    return STATEMENTS["end_execution"](now, values | {"result": b'"else"'})


EXPIRING: dict[str, Any] = {"key_ttl": 1, "later": 1}
DELIVERED, PARKED, LOST, ENDS = (
    "AcceptedIsDelivered", "ParkedIsNotLost", "WaitingMeansPending", "EveryWaitEnds",
)  # fmt: skip

MUTANTS = [
    Mutant(
        "a cancel takes what is settled",
        "OneWinner",
        4,
        saying("cancel_promises", _cancel_what_is_settled, cancels=1),
    ),
    Mutant("settling does not journal", DELIVERED, 3, saying("append", nothing)),
    Mutant(
        "the end has another result",
        "WorkflowSeesTheWinner",
        4,
        saying("end_execution", _end_with_something_else),
    ),
    Mutant("parking keeps nothing", PARKED, 1, saying("park", _park_nothing)),
    Mutant(
        "a promise drops what is parked", PARKED, 3, saying("take_parked", _drop_what_is_parked)
    ),
    Mutant(
        "no request is remembered",
        "SameRequestSameAnswer",
        6,
        saying("settle", _keep_no_request_key, **EXPIRING),
    ),
    Mutant("it lies down in any case", LOST, 5, saying("lie_down", _lie_down_in_any_case)),
    Mutant("nobody is woken", LOST, 3, saying("wake", _wake_nobody)),
    Mutant(
        "a pick-up leaves the fence",
        "FencedRunsChangeNothing",
        6,
        saying("pick_up", _pick_up_with_the_same_fence),
    ),
    Mutant(
        "a replay does not find it", "ReplayFindsItsPromise", 3, saying("find_promise_at", nothing)
    ),
    Mutant("the dead keep what they run", ENDS, 2, saying("pick_up", _pick_up_only_what_is_ready)),
    Mutant("whoever misses a ring sleeps on", ENDS, 3, PromiseModel(polls=False)),
]
