"""The resolution of promises: a workflow that waits, three processes that may run it, providers who
resolve, and everything that may go wrong between two transactions.

What a store does is done by the product's plans. Written here is what the embedded engine does in
between (`durable/embedded/run.py`), and what the world does to it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from oncekey.core.answers import (
    Advanced,
    AlreadySettled,
    Awaited,
    KeyTaken,
    Lost,
    Parked,
    Picked,
    Settled,
)
from oncekey.core.execution import PromiseState, Status
from oncekey.core.work import Advance, Await, Control, Due, Ending, Forget, Load, PickUp
from oncekey.stores.requests import NOBODY, Setting
from oncekey.stores.rows import OWNER_NAME
from tests.model import promise_invariants
from tests.model.explorer import Invariant, Move, unlike
from tests.model.promise_state import (
    CANCELLED,
    CONFLICT,
    LATE,
    LONG,
    NAMES,
    REQUESTS,
    Fact,
    Idle,
    Lies,
    Phase,
    Process,
    Runs,
    State,
    making,
    resolving,
    waiting,
)
from tests.model.promise_tables import (
    DEAD,
    EXECUTION,
    KEEP,
    STATEMENTS,
    TENANT,
    Statement,
    Tables,
    Transaction,
)

_FAULT: dict[str, Any] = {"fair": False, "costs": 1}
_OVER = {Status.SUCCEEDED, Status.FAILED, Status.CANCELLED}


@dataclass(frozen=True)
class PromiseModel:
    """`ways` says how each provider's request names the promise. What comes after `ending` is for
    mutants."""

    ways: tuple[str, ...] = ("key", "name")
    faults: int = 1
    cancels: int = 0
    rivals: int = 0
    key_ttl: int = LONG
    park_ttl: int = LONG
    timeout: int | None = None
    later: int = 0
    """How often time passes."""
    ending: str = promise_invariants.ENDING

    statements: Mapping[str, Statement] = field(default_factory=lambda: STATEMENTS)
    polls: bool = True
    """Whether what is READY is looked for, besides being rung for: a ring may be lost."""

    @property
    def invariants(self) -> dict[str, Invariant]:
        return promise_invariants.ALWAYS

    def initial(self) -> State:
        return State(faults=self.faults, cancels=self.cancels, rivals=self.rivals)

    def canonical(self, state: State) -> State:
        """Processes are all the same: which is which makes no difference."""
        processes, tables = state.processes, state.tables
        holder = tables.execution.owner - 1
        order = sorted(range(len(processes)), key=lambda at: (hash(processes[at]), at == holder))
        if holder in order:
            owner = order.index(holder) + 1
            tables = tables._replace(execution=tables.execution._replace(owner=owner))
        return state._replace(processes=tuple(processes[at] for at in order), tables=tables)

    def moves(self, state: State) -> Iterator[Move]:
        for number in unlike(state.processes, state.tables.execution.owner):
            yield from _Turn(self, state, number).moves()
        yield from _World(self, state).moves()

    def setting(self, state: State, asker: int) -> Setting:
        return Setting(asker, lambda row: _is_gone(state, row[OWNER_NAME]))

    def transaction(self, state: State) -> Transaction:
        return Transaction(state.tables, self.statements)


def _is_gone(state: State, owner: int) -> bool:
    return state.dead_lapsed if owner == DEAD else state.processes[owner - 1].lapsed


class _Asking:
    """Whoever asks the store: a process, or the world."""

    def __init__(self, model: PromiseModel, state: State, number: int = NOBODY) -> None:
        self._model = model
        self._state = state
        self._number = number

    def _ask(self, request: Any) -> tuple[Any, Tables, tuple[Fact, ...]]:
        transaction = self._model.transaction(self._state)
        answer = transaction.ask(request, self._model.setting(self._state, self._number))
        before, after = self._state.tables, transaction.tables()
        return answer, after, tuple(self._facts(request, before, after))

    def _facts(self, request: Any, before: Tables, after: Tables) -> Iterator[Fact]:
        known = {promise.id: promise for promise in before.promises}
        for promise in after.promises:
            old = known.get(promise.id)
            settled = promise.state, promise.body, promise.settled_by
            if promise.state != PromiseState.PENDING and (
                old is None or settled != (old.state, old.body, old.settled_by)
            ):
                yield Fact("settled", "", promise.id, settled)
        running = before.execution.status == Status.RUNNING
        others = running and before.execution.owner != self._number
        if isinstance(request, Advance | Await) and others and after != before:
            yield Fact("harm")

    def _provide(
        self, request: str, way: str, adopts: bool
    ) -> tuple[Any, Any, Tables, tuple[Fact, ...]]:
        asked = resolving(self._state, request, way, self._model.park_ttl, adopts)
        answer, tables, facts = self._ask(asked)
        return asked, answer, tables, (*facts, *self._told(request, answer))

    def _told(self, request: str, answer: Any) -> Iterator[Fact]:
        """What a provider has heard, and whether it fits what it has heard before."""
        heard = [fact for fact in self._state.facts if fact.who == request]
        won = {fact.promise for fact in heard if fact.what == "won"}
        lost = {fact.promise for fact in heard if fact.what == "lost"}
        match answer:
            case Settled(promise) | AlreadySettled(promise, True):
                yield Fact("won", request, promise.id)
                opposite = promise.id in lost or bool(won - {promise.id})
            case AlreadySettled(promise, False):
                yield Fact("lost", request, promise.id)
                opposite = bool(won)
            case Parked(until):
                yield Fact("parked", request, value=until)
                opposite = bool(won)
            case _:
                opposite = False
        if opposite:
            yield Fact("otherwise", request)


class _World(_Asking):
    """Providers, operators and time."""

    def moves(self) -> Iterator[Move]:
        state, model = self._state, self._model
        execution = state.tables.execution
        for request, way in zip(REQUESTS, model.ways, strict=False):
            asked, answer, tables, facts = self._provide(request, way, adopts=False)
            label = f"{request} resolves by {way}: {type(answer).__name__}"
            yield self._move(label, facts, (asked, answer), tables=tables)
        if execution.owner == DEAD and not state.dead_lapsed:
            yield self._move("the lease of the dead lapses", dead_lapsed=True)
        if state.now < model.later:
            yield self._move("time passes", fair=False, now=state.now + 1)
        if state.now:
            yield from self._of_time()
        if state.cancels and execution.status not in _OVER:
            yield self._cancels()
        if state.rivals:
            make = making(state, model.key_ttl)
            answer, tables, facts = self._ask(make)
            label, left = f"a rival makes a promise: {type(answer).__name__}", state.rivals - 1
            yield self._move(label, facts, (make, answer), fair=False, tables=tables, rivals=left)

    def _of_time(self) -> Iterator[Move]:
        now = self._state.now
        for label, request in (
            ("timers fire", Due(now, LATE, LATE)),
            ("what is past its time is forgotten", Forget(now, controls_before=-1)),
        ):
            answer, tables, facts = self._ask(request)
            if tables != self._state.tables:
                yield self._move(label, facts, (request, answer), tables=tables)

    def _cancels(self) -> Move:
        now = self._state.now
        control = Control(TENANT, "c", "cancel", EXECUTION, now, "{}", failure=CANCELLED)
        answer, tables, facts = self._ask(control)
        left = self._state.cancels - 1
        return self._move(
            "an operator cancels", facts, (control, answer), fair=False, tables=tables, cancels=left
        )

    def _move(
        self,
        label: str,
        facts: tuple[Fact, ...] = (),
        asked: Any = None,
        *,
        fair: bool = True,
        **fields: Any,
    ) -> Move:
        after = self._state._replace(facts=self._state.facts.union(facts), **fields)
        over = after.tables.execution.status in _OVER
        asking = None if asked is None else (NOBODY, *asked)
        return Move(label, _tidy(after), fair, over, asking)


class _Turn(_Asking):
    """What one process does next, and what can befall it."""

    @property
    def _process(self) -> Process:
        return self._state.processes[self._number - 1]

    def moves(self) -> Iterator[Move]:
        process = self._process
        if process.frozen:
            yield from self._frozen()
            return
        match process.phase:
            case Idle():
                yield from self._idle()
            case Runs():
                yield from self._runs(process.phase)
            case Lies(fence, wakes):
                yield from self._lies(fence, wakes)
        if self._state.faults and process != Process():
            yield self._is_killed()
            yield self._become(process._replace(frozen=True), "stands still", **_FAULT)

    # -- running -----------------------------------------------------------------------------

    def _idle(self) -> Iterator[Move]:
        execution = self._state.tables.execution
        if self._model.polls or execution.status != Status.READY or not execution.wakes:
            pick = PickUp(NAMES, 1, self._state.now)
            picked, tables, facts = self._ask(pick)
            if picked:
                label, asked = "picks the workflow up", (pick, picked)
                yield self._to(_read(picked[0]), label, facts, asked, tables=tables)
        for request, way in zip(REQUESTS, self._model.ways, strict=False):
            resolve, answer, tables, facts = self._provide(request, way, adopts=True)
            if isinstance(answer, Settled) and answer.woken is not None and answer.woken.fence:
                woken = answer.woken
                phase = Runs(woken.fence, woken.wakes, answer.promise.body)
                label = f"takes {request}, which resolves by {way}, and the workflow with it"
                yield self._to(phase, label, facts, (resolve, answer), tables=tables)

    def _runs(self, runs: Runs) -> Iterator[Move]:
        if runs.is_stale:
            yield self._loads(runs)
        elif runs.value is not None:
            yield self._ends(runs, Status.SUCCEEDED, runs.value)
        elif runs.conflict:
            yield self._ends(runs, Status.FAILED, CONFLICT)
        elif runs.got_up:
            yield self._lies_down(runs)
        else:
            yield from self._waits(runs)

    def _waits(self, runs: Runs) -> Iterator[Move]:
        model, state = self._model, self._state
        request = waiting(state, runs.fence, runs.wakes, model.key_ttl, model.timeout)
        answer, tables, facts = self._ask(request)
        own = any(promise.execution is not None for promise in state.tables.promises)
        match answer:
            case Awaited(_, None, True):
                phase: Phase = Lies(runs.fence, runs.wakes)
            case Awaited(_, None, False):
                phase = runs._replace(is_stale=True)
            case Awaited(promise):
                phase = runs._replace(value=promise.body)
            case KeyTaken():
                phase = runs._replace(conflict=True)
                facts += (Fact("denied"),) if own else ()
            case _:
                phase = Idle()
        label, asked = f"waits: {type(answer).__name__}", (request, answer)
        yield self._to(phase, label, facts, asked, tables=tables)
        if state.faults and tables != state.tables:
            lost = "waits: committed, but the answer is lost"
            yield self._to(runs, lost, facts, asked, tables=tables, **_FAULT)

    def _lies_down(self, runs: Runs) -> Move:
        request = Advance(EXECUTION, runs.fence, self._state.now, waits=runs.wakes)
        answer, tables, facts = self._ask(request)
        match answer:
            case Advanced(woken=True):
                phase: Phase = runs._replace(is_stale=True)
            case Advanced():
                phase = Lies(runs.fence, runs.wakes)
            case _:
                phase = Idle()
        label = f"lies down: {type(answer).__name__}"
        return self._to(phase, label, facts, (request, answer), tables=tables)

    def _loads(self, runs: Runs) -> Move:
        load = Load(EXECUTION, runs.fence)
        answer, tables, facts = self._ask(load)
        phase: Phase = Idle() if isinstance(answer, Lost) else _read(answer)
        return self._to(phase, "reads what is new", facts, (load, answer), tables=tables)

    def _ends(self, runs: Runs, status: Status, result: bytes) -> Move:
        ending = Ending(status, result, KEEP)
        request = Advance(EXECUTION, runs.fence, self._state.now, ending=ending)
        answer, tables, facts = self._ask(request)
        label = f"ends the workflow: {type(answer).__name__}"
        return self._to(Idle(), label, facts, (request, answer), tables=tables)

    def _lies(self, fence: int, wakes: int) -> Iterator[Move]:
        """It is put out, or another branch of the workflow has something to do."""
        yield self._to(Idle(), "is put out")
        request = Advance(EXECUTION, fence, self._state.now)
        answer, tables, facts = self._ask(request)
        held = isinstance(answer, Advanced)
        phase: Phase = Runs(fence, wakes, None, got_up=True) if held else Idle()
        label = f"gets up: {type(answer).__name__}"
        yield self._to(phase, label, facts, (request, answer), tables=tables)

    # -- what befalls it ---------------------------------------------------------------------

    def _is_killed(self) -> Move:
        """Nothing is left but what is committed. Another process has its place at once."""
        tables, fields = self._state.tables, dict(_FAULT)
        if tables.execution.owner == self._number:
            execution = tables.execution._replace(owner=DEAD)
            fields["tables"] = tables._replace(execution=execution)
        return self._become(Process(), "is killed", **fields)

    def _frozen(self) -> Iterator[Move]:
        if not self._process.lapsed:
            yield self._become(self._process._replace(lapsed=True), "is taken for dead")
        back = self._process._replace(frozen=False, lapsed=False)
        yield self._become(back, "goes on")

    def _to(self, phase: Phase, label: str, *args: Any, **fields: Any) -> Move:
        process = self._process._replace(kind=type(phase).__name__, phase=phase)
        return self._become(process, label, *args, **fields)

    def _become(
        self,
        process: Process,
        label: str,
        facts: tuple[Fact, ...] = (),
        asked: Any = None,
        *,
        fair: bool = True,
        costs: int = 0,
        **fields: Any,
    ) -> Move:
        state, at = self._state, self._number - 1
        after = state._replace(
            processes=(*state.processes[:at], process, *state.processes[at + 1 :]),
            faults=state.faults - costs,
            facts=state.facts.union(facts),
            **fields,
        )
        over = after.tables.execution.status in _OVER
        asking = None if asked is None else (self._number, *asked)
        return Move(f"{self._number} {label}", _tidy(after), fair, over, asking)


def _read(picked: Picked) -> Runs:
    value = picked.entries[0].body if picked.entries else None
    return Runs(picked.execution.fence, picked.execution.wakes, value)


def _tidy(state: State) -> State:
    dead = state.dead_lapsed and state.tables.execution.owner == DEAD
    return state._replace(dead_lapsed=dead)
