"""The tables of promises as far as one workflow is concerned, and their named SQL, by statement.

Each does what the statement of its name does in `stores/sqlite/work.sql`, for the one execution
that there is. As in `ledger_tables`, the product's own plans drive them.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from oncekey.core.execution import PromiseKind, PromiseState, Sort, Status
from oncekey.core.model import Kind
from oncekey.core.work import ENGINE
from oncekey.stores.plans import carry_out
from oncekey.stores.requests import Setting, drive

TENANT, WORKFLOW, EXECUTION = "acme", "order", 1
KEEP = 9
# Three processes, and whoever ran the execution and was killed.
OWNERS = (1, 2, 3, DEAD := 9)


class ClaimRow(NamedTuple):
    id: int
    digest: bytes
    namespace: str
    endpoint: str
    key: str
    request_id: str
    created_at: int
    expires_at: int
    promise_id: str | None
    is_settled: bool = False


class PromiseRow(NamedTuple):
    id: int
    name: str
    created_at: int
    execution: int | None
    seq: int | None
    keyed: bool
    due_at: int | None
    state: int = PromiseState.PENDING
    body: bytes | None = None
    settled_by: str | None = None
    settled_at: int | None = None


class ExecutionRow(NamedTuple):
    status: int = Status.READY
    owner: int = 0
    fence: int = 1
    wakes: int = 0
    result: bytes | None = None


class ParkedRow(NamedTuple):
    digest: bytes
    state: int
    body: bytes
    settled_by: str | None
    expires_at: int
    request: int | None


class Tables(NamedTuple):
    """What is committed."""

    execution: ExecutionRow = ExecutionRow()
    claims: tuple[ClaimRow, ...] = ()
    promises: tuple[PromiseRow, ...] = ()
    journal: tuple[tuple[Any, ...], ...] = ()
    parked: ParkedRow | None = None
    tokens: tuple[tuple[bytes, int], ...] = ()


Values = dict[str, Any]
Rows = list[Any]
Statement = Callable[["Transaction", Values], Rows]


class Transaction:
    """The tables while a plan changes them."""

    def __init__(self, tables: Tables, statements: Mapping[str, Statement]) -> None:
        self.execution, claims, promises, self.journal, self.parked, self.tokens = tables
        self.claims = {claim.id: claim for claim in claims}
        self.promises = {promise.id: promise for promise in promises}
        self._statements = statements

    def run(self, name: str, values: Values) -> Rows:
        return self._statements[name](self, values)

    def ask(self, request: Any, setting: Setting) -> Any:
        return drive(carry_out(request, setting), self.run)

    def tables(self) -> Tables:
        claims = tuple(self.claims[number] for number in sorted(self.claims))
        promises = tuple(self.promises[number] for number in sorted(self.promises))
        return Tables(self.execution, claims, promises, self.journal, self.parked, self.tokens)

    def claim_at(self, digest: bytes) -> ClaimRow | None:
        return next((each for each in self.claims.values() if each.digest == digest), None)

    def promise_row(self, promise: PromiseRow | None) -> Rows:
        """As the view `oncekey_promise_rows` has it."""
        if promise is None:
            return []
        claim = self.claims.get(promise.id) if promise.keyed else None
        key = (None, None) if claim is None else (claim.key, claim.expires_at)
        number, name, created_at, execution, seq, _, due_at, state, body, by, at = promise
        head = (number, TENANT, PromiseKind.PROMISE, name, state, created_at, execution, seq)
        sort = None if execution is None else Sort.WORKFLOW
        return [(*head, sort, b"p", *key, due_at, body, by, at, None, None, None, None, 0)]

    def promise_by(self, **fields: Any) -> Rows:
        found = (
            each
            for each in self.promises.values()
            if all(getattr(each, name) == value for name, value in fields.items())
        )
        return self.promise_row(next(found, None))

    def change(self, **fields: Any) -> None:
        self.execution = self.execution._replace(**fields)


# -- claims --------------------------------------------------------------------------------------


def claim_for_engine(now: Transaction, values: Values) -> Rows:
    if now.claim_at(values["digest"]) is not None or values["id"] in now.claims:
        return []
    now.claims[values["id"]] = ClaimRow(*(values[name] for name in ClaimRow._fields[:-1]))
    return [(values["id"],)]


def find(now: Transaction, values: Values) -> Rows:
    claim = now.claim_at(values["digest"])
    if claim is None:
        return []
    scope = (claim.id, claim.namespace, claim.endpoint, claim.key, bytes(16), ENGINE, 1)
    times = (claim.request_id, "interactive", claim.created_at, claim.expires_at)
    kept: tuple[Any, ...] = (None,) * 6
    if claim.is_settled:
        kept = (Kind.VALUE, 0, b"", b"null", claim.created_at, claim.expires_at)
    return [(*scope, *times, None, None, claim.promise_id, *kept, None, None, None)]


def forget_claim(now: Transaction, values: Values) -> Rows:
    now.claims.pop(values["id"], None)
    return []


def settle(now: Transaction, values: Values) -> Rows:
    """The outcome of a request that is carried out in the same transaction."""
    now.claims[values["id"]] = now.claims[values["id"]]._replace(is_settled=True)
    return [(values["id"],)]


def link_request(now: Transaction, values: Values) -> Rows:
    claim = now.claims.get(values["id"])
    if claim is not None:
        now.claims[claim.id] = claim._replace(promise_id=values["promise_id"])
    return []


def forget_promise_keys(now: Transaction, values: Values) -> Rows:
    past = [
        claim.id
        for claim in now.claims.values()
        if claim.promise_id and not claim.is_settled and claim.expires_at <= values["now"]
    ]
    for number in past:
        del now.claims[number]
    return [(number,) for number in past]


# -- promises ------------------------------------------------------------------------------------


def make_promise(now: Transaction, values: Values) -> Rows:
    named = any(
        (each.execution, each.name) == (values["execution"], values["name"])
        for each in now.promises.values()
        if each.execution is not None
    )
    if named or values["id"] in now.promises:
        return []
    made = PromiseRow(
        values["id"],
        values["name"],
        values["created_at"],
        values["execution"],
        values["seq"],
        bool(values["keyed"]),
        values["due_at"],
    )
    now.promises[made.id] = made
    return [(made.id,)]


def find_promise_by_key(now: Transaction, values: Values) -> Rows:
    claim = now.claim_at(values["digest"])
    return [] if claim is None else now.promise_row(now.promises.get(claim.id))


def find_promise_by_token(now: Transaction, values: Values) -> Rows:
    number = dict(now.tokens).get(values["digest"], 0)
    return now.promise_row(now.promises.get(number))


def find_promise_by_name(now: Transaction, values: Values) -> Rows:
    return now.promise_by(execution=values["execution"], name=values["name"])


def add_token(now: Transaction, values: Values) -> Rows:
    now.tokens = tuple({values["digest"]: values["promise"], **dict(now.tokens)}.items())
    return []


def settle_promise(now: Transaction, values: Values) -> Rows:
    promise = now.promises.get(values["id"])
    if promise is None or promise.state != PromiseState.PENDING:
        return []
    now.promises[promise.id] = promise._replace(
        state=values["state"],
        body=values["body"],
        settled_by=values["settled_by"],
        settled_at=values["now"],
    )
    return [(promise.id,)]


def cancel_promises(now: Transaction, values: Values) -> Rows:
    for promise in list(now.promises.values()):
        if promise.execution is not None and promise.state == PromiseState.PENDING:
            cancelled = promise._replace(state=PromiseState.CANCELLED, settled_at=values["now"])
            now.promises[promise.id] = cancelled
    return []


def due_promises(now: Transaction, values: Values) -> Rows:
    return [
        row
        for promise in now.promises.values()
        if promise.state == PromiseState.PENDING
        and promise.due_at is not None
        and promise.due_at <= values["now"]
        for row in now.promise_row(promise)
    ]


# -- what is parked ------------------------------------------------------------------------------


def park(now: Transaction, values: Values) -> Rows:
    if now.parked is not None:
        return []
    now.parked = ParkedRow(*(values[name] for name in ParkedRow._fields))
    return [(now.parked.expires_at,)]


def find_parked(now: Transaction, values: Values) -> Rows:
    return [] if now.parked is None else [(now.parked.expires_at,)]


def forget_parked(now: Transaction, values: Values) -> Rows:
    if now.parked is None or now.parked.expires_at > values["now"]:
        return []
    gone, now.parked = now.parked, None
    return [(gone.digest,)]


def take_parked(now: Transaction, values: Values) -> Rows:
    taken, now.parked = now.parked, None
    return [] if taken is None else [taken[1:]]


# -- the execution -------------------------------------------------------------------------------


def lock_execution(now: Transaction, values: Values) -> Rows:
    return [(now.execution.status, now.execution.fence, TENANT, None)]


def find_execution(now: Transaction, values: Values) -> Rows:
    status, owner, fence, wakes, result = now.execution
    head = (EXECUTION, TENANT, Sort.WORKFLOW, WORKFLOW, b"[]", status, owner, fence, 0, wakes)
    return [(*head, KEEP, None, False, None, None, None, result, None, None, None)]


def append(now: Transaction, values: Values) -> Rows:
    names = ("seq", "step", "name", "fingerprint", "failed", "body", "attempts", "started_at", "at")
    if all(entry[0] != values["seq"] for entry in now.journal):
        now.journal = (*now.journal, tuple(values[name] for name in names))
    return []


def get_up(now: Transaction, values: Values) -> Rows:
    now.change(status=Status.RUNNING, owner=values["owner"])
    return []


def lie_down(now: Transaction, values: Values) -> Rows:
    status, _, fence, wakes, _ = now.execution
    if (status, fence, wakes) != (Status.RUNNING, values["fence"], values["wakes"]):
        return []
    now.change(status=Status.WAITING, owner=0)
    return [(EXECUTION,)]


def wake(now: Transaction, values: Values) -> Rows:
    status, wakes = now.execution.status, now.execution.wakes + 1
    now.change(wakes=wakes, status=Status.READY if status == Status.WAITING else status)
    return [(now.execution.status,)]


def adopt(now: Transaction, values: Values) -> Rows:
    if now.execution.status != Status.READY:
        return []
    now.change(status=Status.RUNNING, owner=values["owner"], fence=now.execution.fence + 1)
    return [(now.execution.fence, now.execution.wakes)]


def pick_up(now: Transaction, values: Values) -> Rows:
    status, owner, fence, *_ = now.execution
    gone = owner in {0, *json.loads(values["gone"])}
    if status not in {Status.READY, Status.RUNNING} or not gone:
        return []
    now.change(status=Status.RUNNING, owner=values["owner"], fence=fence + 1)
    return [(EXECUTION,)]


def end_execution(now: Transaction, values: Values) -> Rows:
    fence = now.execution.fence + values["bump"]
    now.change(status=values["status"], result=values["result"], owner=0, fence=fence)
    return [(False, False, False, Sort.WORKFLOW)]


def one(now: Transaction, values: Values) -> Rows:
    return [(1,)]


def nothing(now: Transaction, values: Values) -> Rows:
    """Tables that the model has no rows of."""
    return []


STATEMENTS: Mapping[str, Statement] = {
    "claim_for_engine": claim_for_engine,
    "find": find,
    "forget_claim": forget_claim,
    "forget_outcome": nothing,
    "settle": settle,
    "link_request": link_request,
    "forget_promise_keys": forget_promise_keys,
    "make_promise": make_promise,
    "find_promise": lambda now, values: now.promise_by(id=values["id"]),
    "find_promise_at": lambda now, values: now.promise_by(execution=EXECUTION, seq=values["seq"]),
    "find_promise_by_key": find_promise_by_key,
    "find_promise_by_token": find_promise_by_token,
    "find_promise_by_name": find_promise_by_name,
    "add_token": add_token,
    "settle_promise": settle_promise,
    "cancel_promises": cancel_promises,
    "due_promises": due_promises,
    "park": park,
    "find_parked": find_parked,
    "forget_parked": forget_parked,
    "forget_parked_if_past": forget_parked,
    "take_parked": take_parked,
    "lock_key": one,
    "lock_promise": one,
    "lock_execution": lock_execution,
    "try_lock_execution": lock_execution,
    "find_execution": find_execution,
    "read_executions": find_execution,
    "append": append,
    "journals": lambda now, values: [(EXECUTION, *entry) for entry in now.journal],
    "waits_of": lambda now, values: now.promise_by(execution=EXECUTION, state=PromiseState.PENDING),
    "get_up": get_up,
    "lie_down": lie_down,
    "wake": wake,
    "adopt": adopt,
    "pick_up": pick_up,
    "end_execution": end_execution,
    "owners": lambda now, values: [(number, number, None, None, 0, 0) for number in OWNERS],
    "find_control": nothing,
    "keep_control": nothing,
    "due_executions": nothing,
    "next_due": lambda now, values: [(None,)],
    "expired_executions": nothing,
    "forget_promises": nothing,
    "forget_events": nothing,
    "forget_controls": nothing,
}
