"""The tables of the ledger as far as one key is concerned, and its named SQL, by statement.

Each does what the statement of its name does in `stores/sqlite/queries.sql`. Which of them a
request needs, and in which order, is not said here: the product's own plans drive them.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from oncekey.core.model import Kind
from oncekey.core.ports import Answer
from oncekey.core.scope import Scope
from oncekey.stores.requests import Setting, carry_out, drive
from oncekey.stores.windows import LAST

NAMESPACE, ENDPOINT, KEY = SCOPE_AND_KEY = ("t-default:_tenant:client:a", "POST /orders", "k")
SCOPE = Scope(NAMESPACE, ENDPOINT)


class ClaimRow(NamedTuple):
    id: int
    fingerprint: bytes
    owner: int
    fence: int
    created_at: int
    expires_at: int


class OutcomeRow(NamedTuple):
    id: int
    fence: int
    body: bytes
    completed_at: int
    expires_at: int


class Tables(NamedTuple):
    """What is committed."""

    claim: ClaimRow | None = None
    outcome: OutcomeRow | None = None


Values = dict[str, Any]
Rows = list[Any]
Statement = Callable[["Transaction", Values], Rows]


class Transaction:
    """The tables while a plan changes them."""

    def __init__(self, tables: Tables, statements: Mapping[str, Statement]) -> None:
        self.claim, self.outcome = tables
        self._statements = statements

    def run(self, name: str, values: Values) -> Rows:
        return self._statements[name](self, values)

    def ask(self, request: Any, setting: Setting) -> Answer:
        answer: Answer = drive(carry_out(request, setting), self.run)
        return answer

    def tables(self) -> Tables:
        return Tables(self.claim, self.outcome)

    def at(self, values: Values, *, open_: bool = False) -> ClaimRow | None:
        """The claim with the number and the fence; with `open_`, if it has no outcome."""
        claim = self.claim
        if claim is None or (claim.id, claim.fence) != (values["id"], values["fence"]):
            return None
        return None if open_ and self.outcome is not None else claim


def find(now: Transaction, values: Values) -> Rows:
    claim, outcome = now.claim, now.outcome
    if claim is None:
        return []
    number, fingerprint, owner, fence, created_at, expires_at = claim
    held = (number, *SCOPE_AND_KEY, fingerprint, owner, fence, "", "interactive")
    kept: tuple[Any, ...] = (None,) * 6
    if outcome is not None:
        kept = (Kind.VALUE, 0, b"", outcome.body, outcome.completed_at, outcome.expires_at)
    # Who the owner is, is looked up by its number: see `Setting.is_gone`.
    return [(*held, created_at, expires_at, None, None, None, *kept, owner, None, None)]


def find_by_id(now: Transaction, values: Values) -> Rows:
    return find(now, values) if now.claim is not None and now.claim.id == values["id"] else []


def insert(now: Transaction, values: Values) -> Rows:
    if now.claim is not None:
        return []
    columns = ("id", "fingerprint", "owner", "created_at", "expires_at")
    number, fingerprint, owner, created_at, expires_at = (values[name] for name in columns)
    now.claim = ClaimRow(number, fingerprint, owner, 1, created_at, expires_at)
    return [(number,)]


def lock(now: Transaction, values: Values) -> Rows:
    """A transaction is alone."""
    return [(1,)]


def take(now: Transaction, values: Values) -> Rows:
    claim = now.at(values, open_=True)
    if claim is None:
        return []
    now.claim = claim._replace(owner=values["owner"], fence=claim.fence + 1)
    return [(claim.id,)]


def settle(now: Transaction, values: Values) -> Rows:
    claim = now.at(values)
    if claim is None or now.outcome is not None:
        return []
    times = values["completed_at"], values["expires_at"]
    now.outcome = OutcomeRow(claim.id, claim.fence, values["body"], *times)
    return [(claim.id,)]


def outcome_fence(now: Transaction, values: Values) -> Rows:
    outcome = now.outcome
    return [(outcome.fence,)] if outcome is not None and outcome.id == values["id"] else []


def release(now: Transaction, values: Values) -> Rows:
    claim = now.at(values, open_=True)
    if claim is None:
        return []
    now.claim = None
    return [(claim.id,)]


def abandon(now: Transaction, values: Values) -> Rows:
    claim = now.at(values, open_=True)
    if claim is None or claim.owner not in {values["owner"], 0}:
        return []
    now.claim = claim._replace(owner=0)
    return [(claim.id,)]


def purge(now: Transaction, values: Values) -> Rows:
    claim, now.claim = now.claim, None
    return [] if claim is None else [(claim.id,)]


def forget_expired(now: Transaction, values: Values) -> Rows:
    claim = now.at(values)
    if claim is None or (now.outcome or claim).expires_at > values["now"]:
        return []
    now.claim = None
    return [(claim.id,)]


def forget_outcome(now: Transaction, values: Values) -> Rows:
    if now.outcome is not None and now.outcome.id == values["id"]:
        now.outcome = None
    return []


def sweep(now: Transaction, values: Values) -> Rows:
    outcome = now.outcome
    if outcome is None or outcome.expires_at > values["now"]:
        return []
    now.outcome = None
    return [(outcome.id,)]


def forget_claims(now: Transaction, values: Values) -> Rows:
    if now.claim is not None and now.claim.id in json.loads(values["ids"]):
        now.claim = None
    return []


def owners(now: Transaction, values: Values) -> Rows:
    """Of those that are known, whoever has the claim: the others left nothing behind."""
    claim = now.claim
    return [(claim.owner, claim.owner, None, None, 0, 0)] if claim and claim.owner else []


def first_held(now: Transaction, values: Values) -> Rows:
    claim = _unsettled(now, values)
    held = claim and claim.owner in json.loads(values["owners"])
    return [(claim.owner, claim.expires_at)] if claim and held else []


def expired_claims(now: Transaction, values: Values) -> Rows:
    claim = _unsettled(now, values)
    return find(now, values) if claim and claim.expires_at <= values["now"] else []


def expired_abandoned(now: Transaction, values: Values) -> Rows:
    if now.claim is None or now.claim.owner:
        return []
    return expired_claims(now, {"since": 0, "to": LAST, **values})


def _unsettled(now: Transaction, values: Values) -> ClaimRow | None:
    """The claim, if it is in the window and has no outcome."""
    claim = now.claim
    if claim is None or now.outcome is not None:
        return None
    return claim if values["since"] <= claim.id < values["to"] else None


def nothing(now: Transaction, values: Values) -> Rows:
    """What the model has no rows of."""
    return []


STATEMENTS: Mapping[str, Statement] = {
    "find": find,
    "find_by_id": find_by_id,
    "insert": insert,
    "lock_claim": lock,
    "try_lock_claim": lock,
    "take": take,
    "settle": settle,
    "outcome_fence": outcome_fence,
    "release": release,
    "abandon": abandon,
    "purge": purge,
    "forget_expired": forget_expired,
    "forget_outcome": forget_outcome,
    "sweep": sweep,
    "forget_claims": forget_claims,
    "owners": owners,
    "first_held": first_held,
    "claims_ahead": nothing,
    "expired_claims": expired_claims,
    "expired_abandoned": expired_abandoned,
    "forget_owner": nothing,
    "sweep_deliveries": nothing,
}
