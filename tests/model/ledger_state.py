"""What a state of the ledger's model is made of: tables, processes, and what cannot be undone."""

from typing import NamedTuple

from oncekey.core.model import Ref
from oncekey.core.ports import Insert, Purge, Replace, Request
from oncekey.stores.requests import NOBODY
from tests.model.ledger_tables import KEY, SCOPE, Tables

REF = Ref(SCOPE, KEY)
DIGEST = REF.digest
# Whoever held the claim and was killed. What has its place now is another owner.
DEAD = 9
X, Y = b"x" * 16, b"y" * 16


class Idle(NamedTuple):
    """It serves nobody, and claims the key as soon as somebody asks."""


class Sent(NamedTuple):
    """The writer has the request, and may have carried it out or not when the process dies.

    Named tuples are equal when their values are; `kind` keeps a Release from being an Abandon.
    """

    kind: str
    request: Request


class Asks(NamedTuple):
    """It has taken the claim over and asks the application's `recover` hook."""

    id: int
    fence: int


class Runs(NamedTuple):
    """In the handler; `done` once the effect has happened."""

    id: int
    fence: int
    done: bool


Phase = Idle | Sent | Asks | Runs


class Process(NamedTuple):
    fingerprint: bytes
    """Of what it is asked."""
    phase: Phase = Idle()
    undo: tuple[Sent, ...] = ()
    """What the writer still has to take back: see `stores.writer._undo`."""
    frozen: bool = False
    lapsed: bool = False
    """Whether others take it for dead."""
    excused: bool = False
    """Whether, since it holds its claim, others took it for dead or an operator purged the key."""


class Fact(NamedTuple):
    """What has happened and cannot be undone. Processes know nothing of it; invariants do."""

    what: str
    id: int
    fence: int = 0
    by: bytes = b""
    """The fingerprint of whoever did it, or was told."""
    value: bytes = b""


class State(NamedTuple):
    processes: tuple[Process, ...]
    tables: Tables = Tables()
    now: int = 0
    dead_lapsed: bool = False
    faults: int = 0
    purges: int = 0
    """How many more there may be."""
    stood_still: bool = False
    """Whether any process ever did."""
    facts: frozenset[Fact] = frozenset()


def is_lapsed(state: State, owner: int) -> bool:
    if owner == NOBODY:
        return True
    return state.dead_lapsed if owner == DEAD else state.processes[owner - 1].lapsed


def of(request: Request) -> Sent:
    return Sent(type(request).__name__, request)


def remembered(state: State) -> set[int]:
    """The numbers of operations that anything in the state names. Any other is new to everybody."""
    return _live(state) | {fact.id for fact in state.facts}


def tidy(state: State) -> State:
    """Forget what can make no difference any more: states that differ in it are the same."""
    claim, facts = state.tables.claim, state.facts
    if facts:
        live = _live(state)
        over = {fact.id for fact in facts if fact.what == "over"}
        lasting = lasting_effects(state)
        facts = frozenset(
            fact
            for fact in facts
            if not fact.id or fact.id in live or _counts(fact, over) or fact in lasting
        )
    dead = state.dead_lapsed and claim is not None and claim.owner == DEAD
    return state._replace(facts=facts, dead_lapsed=dead)


def lasting_effects(state: State) -> set[Fact]:
    """What was done, and nobody has said that it failed, until the key is new again."""
    if state.now:
        return set()
    purged = {fact.id for fact in state.facts if fact.what == "purged"}
    failed = {(fact.id, fact.fence) for fact in state.facts if fact.what == "failed"}
    return {
        fact
        for fact in state.facts
        if fact.what == "done" and fact.id not in purged and (fact.id, fact.fence) not in failed
    }


def _counts(fact: Fact, over: set[int]) -> bool:
    """What is kept, and who was told, counts until the key is new again."""
    return fact.id not in over and fact.what in {"kept", "told"}


def _live(state: State) -> set[int]:
    claim = state.tables.claim
    live = set() if claim is None else {claim.id}
    for process in state.processes:
        live.update(_named_by(process))
    return live


def _named_by(process: Process) -> set[int]:
    named = {number for job in process.undo for number in _named_in(job.request)}
    match process.phase:
        case Sent(_, request):
            return named | _named_in(request)
        case Asks(number) | Runs(number):
            return named | {number}
        case Idle():
            return named


def _named_in(request: Request) -> set[int]:
    match request:
        case Replace(old, _, Insert(number)):
            return {old, number}
        case Purge():
            return set()
        case _:
            return {request.id}
