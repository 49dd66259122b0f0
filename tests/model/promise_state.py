"""What a state of the promises' model is made of, and the requests that are asked in it."""

from typing import Any, NamedTuple

from oncekey.core.execution import Promise, PromiseKind, PromiseState, Sort
from oncekey.core.model import Operation, Ref
from oncekey.core.ports import Insert
from oncekey.core.scope import Scope
from oncekey.core.work import Advance, Await, Make, Park, Resolve, Target
from tests.model.promise_tables import EXECUTION, TENANT, WORKFLOW, Tables

KEY, TOKEN, NAME, SEQ = "stripe:ch_1", b"t" * 32, "payment", 0
REQUESTS = ("r1", "r2")
NAMES = ((Sort.WORKFLOW, WORKFLOW),)
LATE, CONFLICT, CANCELLED = b'"late"', b'"conflict"', b'"cancelled"'
LONG = 99


class Idle(NamedTuple):
    """It runs nothing."""


class Runs(NamedTuple):
    """The workflow's code is in it. `value` is what its promise came to, as far as it knows."""

    fence: int
    wakes: int
    value: bytes | None
    is_stale: bool = False
    """Whether it was woken by something it has not read."""
    conflict: bool = False
    got_up: bool = False
    """Whether it has waited before: another branch of its code had something to do."""


class Lies(NamedTuple):
    """The workflow waits, and its code is still in memory."""

    fence: int
    wakes: int


Phase = Idle | Runs | Lies


class Process(NamedTuple):
    kind: str = "Idle"
    """Named tuples are equal when their values are."""
    phase: Phase = Idle()
    frozen: bool = False
    lapsed: bool = False


class Fact(NamedTuple):
    """What has happened and cannot be undone. Processes know nothing of it; invariants do."""

    what: str
    who: str = ""
    promise: int = 0
    value: Any = None


class State(NamedTuple):
    processes: tuple[Process, ...] = (Process(),) * 3
    tables: Tables = Tables()
    now: int = 0
    dead_lapsed: bool = False
    faults: int = 0
    cancels: int = 0
    rivals: int = 0
    facts: frozenset[Fact] = frozenset()


# -- requests, as the embedded engine makes them -------------------------------------------------


def _ref(endpoint: str, key: str) -> Ref:
    return Ref(Scope(f"t-{TENANT}:_tenant:service:oncekey", endpoint), key)


DIGEST = _ref("promise", KEY).digest


def number_in(tables: Tables) -> int:
    """A number that is new to everybody."""
    used = {EXECUTION, *(row.id for row in tables.claims), *(row.id for row in tables.promises)}
    return next(number for number in range(1, LONG) if number not in used)


def _insert(endpoint: str, key: str, number: int, now: int, kept: int) -> Insert:
    ref = _ref(endpoint, key)
    return Insert(number, ref.digest, Operation(ref), now, now + kept)


def waiting(state: State, fence: int, wakes: int, key_ttl: int, due: int | None) -> Await:
    number, now = number_in(state.tables), state.now
    promise = Promise(
        number, TENANT, PromiseKind.PROMISE, NAME, PromiseState.PENDING, now, EXECUTION, SEQ,
        fingerprint=b"p", due_at=due,
    )  # fmt: skip
    advance = Advance(EXECUTION, fence, now, waits=wakes)
    return Await(advance, promise, _insert("promise", KEY, number, now, key_ttl), TOKEN)


def making(state: State, key_ttl: int) -> Make:
    """By somebody else, over the API, under the same key."""
    number, now = number_in(state.tables), state.now
    promise = Promise(
        number, TENANT, PromiseKind.PROMISE, "rival", PromiseState.PENDING, now, fingerprint=b"p"
    )
    return Make(promise, _insert("promise", KEY, number, now, key_ttl))


def resolving(state: State, request: str, way: str, park_ttl: int, adopts: bool) -> Resolve:
    now = state.now
    insert = _insert("resolve", request, number_in(state.tables), now, LONG)
    park = Park(DIGEST, KEY, now + park_ttl) if way == "key" else None
    rejects = request == "r2"
    settled = PromiseState.REJECTED if rejects else PromiseState.RESOLVED
    body = b'"%s"' % request.encode()
    adopt = NAMES if adopts else ()
    return Resolve(target_of(way), settled, body, now, request, insert, park, adopt)


def target_of(way: str) -> Target:
    match way:
        case "key":
            return Target(TENANT, digest=DIGEST)
        case "token":
            return Target(TENANT, token=TOKEN)
        case _:
            return Target(TENANT, execution=EXECUTION, name=NAME)
