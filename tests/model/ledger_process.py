"""What one process does next in the ledger's model, and what can befall it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from oncekey.core.decision import Busy, Mismatch, Renew, Replay, TakeOver, Unknown
from oncekey.core.finality import is_final
from oncekey.core.model import Kind, Outcome, Record
from oncekey.core.ports import (
    Abandon,
    Answer,
    Found,
    Held,
    Insert,
    Peek,
    Release,
    Replace,
    Request,
    Settle,
    Take,
)
from tests.model.explorer import Move
from tests.model.ledger_state import (
    DEAD,
    DIGEST,
    Asks,
    Fact,
    Idle,
    Phase,
    Process,
    Runs,
    Sent,
    State,
    of,
    remembered,
    tidy,
)
from tests.model.ledger_tables import Tables, Transaction

if TYPE_CHECKING:
    from tests.model.ledger import LedgerModel

_KEPT_FOR = 1
_NOT_DRAWN = 0
_ENDINGS = (Settle, Release, Abandon)
_MOST_FENCES = 3
_FAULT: dict[str, Any] = {"fair": False, "costs": 1}


class Asked(NamedTuple):
    """What a process asked of the store, and the answer."""

    process: int
    request: Request
    answer: Answer


class Heard(NamedTuple):
    """What an answer of the store leads to."""

    phase: Phase
    label: str
    facts: tuple[Fact, ...] = ()
    progress: bool = False


class Turn:
    def __init__(self, model: LedgerModel, state: State, number: int) -> None:
        self._model = model
        self._state = state
        self._number = number
        self._process = state.processes[number - 1]

    def moves(self) -> Iterator[Move]:
        process = self._process
        if process.frozen:
            yield from self._frozen()
            return
        yield from self._ahead(process.phase)
        if process.undo:
            yield self._undoes(process.undo[0].request)
        if self._state.faults and process != Process(process.fingerprint):
            yield self._is_killed()
            yield self._move(
                process._replace(frozen=True), "stands still", stood_still=True, **_FAULT
            )

    def _ahead(self, phase: Phase) -> Iterator[Move]:
        match phase:
            case Idle():
                yield from self._asks_the_store(self._insert())
            case Sent("Take") if self._process.undo and self._model.in_turn:
                # Takeovers go through one writer, behind what it has to take back.
                return
            case Sent(_, request):
                yield from self._asks_the_store(request)
            case Asks(number, fence):
                yield from self._recovers(number, fence)
            case Runs(number, fence, done):
                yield from self._runs(number, fence, done)

    def _to(self, phase: Phase, label: str, *facts: Fact, **fields: Any) -> Move:
        """Nobody but the process itself sees this move."""
        excused = self._process.excused and not isinstance(phase, Idle)
        return self._move(
            self._process._replace(phase=phase, excused=excused), label, facts, **fields
        )

    def _move(
        self,
        process: Process,
        label: str,
        facts: tuple[Fact, ...] = (),
        *,
        fair: bool = True,
        progress: bool = False,
        costs: int = 0,
        asked: Asked | None = None,
        **fields: Any,
    ) -> Move:
        state, at = self._state, self._number - 1
        processes = (*state.processes[:at], process, *state.processes[at + 1 :])
        after = state._replace(
            processes=processes,
            faults=state.faults - costs,
            facts=state.facts.union(facts) if facts else state.facts,
            **fields,
        )
        return Move(f"{self._number} {label}", tidy(after), fair, progress, asked)

    # -- a request to the store --------------------------------------------------------------

    def _insert(self) -> Insert:
        now, operation = self._state.now, self._model.operation(self._process.fingerprint)
        return Insert(_NOT_DRAWN, DIGEST, operation, now, now + _KEPT_FOR)

    def _drawn(self, request: Request) -> Request:
        """With a number that is new to everybody, for what claims a new key."""
        match request:
            case Insert():
                return request._replace(id=self._number_nobody_has())
            case Replace(_, _, insert):
                insert = insert._replace(id=self._number_nobody_has())
                return request._replace(insert=insert)
            case _:
                return request

    def _number_nobody_has(self) -> int:
        known = remembered(self._state)
        return next(number for number in range(1, 99) if number not in known)

    def _asks_the_store(self, request: Request) -> Iterator[Move]:
        """What a process makes of an answer nobody else sees: it is one step with the commit."""
        request = self._drawn(request)
        tables, answer, facts = self._carry_out(request)
        name = type(request).__name__
        heard = self._hears(request, answer)
        process = self._process._replace(
            phase=heard.phase, excused=self._process.excused and not isinstance(answer, Held)
        )
        yield self._move(
            process,
            f"{name}: {heard.label}",
            facts + heard.facts,
            tables=tables,
            progress=heard.progress,
            asked=Asked(self._number, request, answer),
        )
        if self._model.runs_early and isinstance(request, Insert):
            effect = Fact("effect", request.id, 1, self._process.fingerprint)
            early = Runs(request.id, 1, done=True)
            yield self._to(early, f"{name}: does not wait for the commit", effect)
        if self._state.faults and not isinstance(request, Peek):
            yield from self._in_doubt(Asked(self._number, request, answer), tables, facts)

    def _in_doubt(self, asked: Asked, tables: Tables, facts: tuple[Fact, ...]) -> Iterator[Move]:
        """The writer tries an ending again for as long as it takes; a claim it takes back."""
        request, name = asked.request, type(asked.request).__name__
        after = self._process if isinstance(request, _ENDINGS) else self._refused(request)
        if after != self._process:
            yield self._move(after, f"{name}: not committed, the store is away", **_FAULT)
        if tables != self._state.tables:
            kept = f"{name}: committed, but the answer is lost"
            yield self._move(after, kept, facts, tables=tables, asked=asked, **_FAULT)

    def _carry_out(self, request: Request) -> tuple[Tables, Answer, tuple[Fact, ...]]:
        before = self._state.tables
        transaction = Transaction(before, self._model.statements)
        answer = transaction.ask(request, self._model.setting(self._state, self._number))
        after = transaction.tables()
        return after, answer, tuple(self._facts(request, answer, before, after))

    def _facts(
        self, request: Request, answer: Answer, before: Tables, after: Tables
    ) -> Iterator[Fact]:
        if isinstance(answer, Held) and after.claim is not None:
            held = after.claim
            yield Fact("claimed", held.id, held.fence, held.fingerprint)
        if after == before or not isinstance(request, _ENDINGS):
            return
        outcome = after.outcome
        if outcome is not None:
            yield Fact("kept", outcome.id, value=outcome.body)
        if after.claim is None or (outcome is not None and outcome.expires_at <= self._state.now):
            yield Fact("over", request.id)
        claim = before.claim
        holder = (request.id, request.fence, self._number)
        if claim is None or (claim.id, claim.fence, claim.owner) != holder:
            yield Fact("harm", 0)

    def _refused(self, request: Request) -> Process:
        """Whoever asked is told that the store is away; what may have been made is taken back."""
        undo = self._process.undo + (_undo_of(request) if self._model.undoes else ())
        return self._process._replace(phase=Idle(), excused=False, undo=undo)

    def _undoes(self, undo: Request) -> Move:
        tables, answer, facts = self._carry_out(undo)
        label = f"takes back what it is unsure of: {type(undo).__name__}"
        process = self._process._replace(undo=self._process.undo[1:])
        asked = Asked(self._number, undo, answer)
        return self._move(process, label, facts, tables=tables, asked=asked)

    # -- what it makes of the answer ---------------------------------------------------------

    def _hears(self, request: Request, answer: Answer) -> Heard:
        match request, answer:
            case ((Insert(number) | Replace(_, _, Insert(number))), Held(fence)):
                runs = Runs(number, fence, done=False)
                return Heard(runs, "runs the handler")
            case Take(number), Held(fence):
                asks = self._model.takeover == "recover" and self._model.asks
                phase = Asks(number, fence) if asks else Runs(number, fence, done=False)
                return Heard(phase, "has taken the claim over")
            case ((Insert() | Replace() | Take()), Found(record, lapsed)):
                return self._decides(record, lapsed)
            case Settle(number, _, outcome), True:
                return self._answers(number, outcome, "answers")
            case Settle(), _:
                return Heard(of(Peek(DIGEST)), "has lost its claim, and looks who has won")
            case Peek(), Found(record) if record.outcome is not None and self._is_ours(record):
                return self._answers(record.id, record.outcome, "answers what the winner has kept")
            case _:
                return Heard(Idle(), "has no answer to give")

    def _is_ours(self, record: Record) -> bool:
        """As `Ledger.attach` sees it: what was asked for the same."""
        return record.fingerprint == self._process.fingerprint or not self._model.compares

    def _decides(self, record: Record, lapsed: bool) -> Heard:
        operation = self._model.operation(self._process.fingerprint)
        match self._model.decide(record, lapsed, operation, self._state.now):
            case Renew():
                return Heard(of(Replace(record.id, record.fence, self._insert())), "Renew")
            case TakeOver():
                return Heard(of(Take(record.id, DIGEST, record.fence)), "TakeOver")
            case Replay():
                assert record.outcome is not None
                return self._answers(record.id, record.outcome, "Replay")
            case Unknown():
                return Heard(Idle(), "Unknown", self._too_late(), progress=True)
            case Busy():
                return Heard(Idle(), "Busy")
            case Mismatch():
                return Heard(Idle(), "Mismatch")

    def _answers(self, number: int, outcome: Outcome, label: str) -> Heard:
        return Heard(Idle(), label, (self._told(number, outcome),), progress=True)

    def _told(self, number: int, outcome: Outcome) -> Fact:
        return Fact("told", number, by=self._process.fingerprint, value=outcome.body)

    def _too_late(self) -> tuple[Fact, ...]:
        """That nobody knows contradicts the answer, once somebody had it and while it is kept."""
        facts, mine = self._state.facts, self._process.fingerprint
        over = {fact.id for fact in facts if fact.what == "over"}
        told = {fact.id for fact in facts if fact.what == "told" and fact.by == mine}
        return (Fact("contradicted", 0),) if told - over else ()

    # -- the handler -------------------------------------------------------------------------

    def _runs(self, number: int, fence: int, done: bool) -> Iterator[Move]:
        mine = self._process.fingerprint
        if done:
            # It fails so often and no oftener, or fences would grow for ever.
            for status in (200, 503) if fence < _MOST_FENCES else (200,):
                yield self._concludes(number, fence, status)
        else:
            facts = (Fact(what, number, fence, mine) for what in ("effect", "done"))
            yield self._to(Runs(number, fence, done=True), "has its effect", *facts)
        if self._state.faults:
            yield self._to(of(Abandon(number, fence)), "is cut off", **_FAULT)

    def _concludes(self, number: int, fence: int, status: int) -> Move:
        outcome = Outcome(Kind.RESPONSE, status, (), _value_of(self._process.fingerprint, fence))
        if is_final(outcome):
            return self._settles(number, fence, outcome, f"has a {status}")
        failed = Fact("failed", number, fence)
        ending = self._model.gives_back(number, fence)
        return self._to(of(ending), f"has a {status}", failed, fair=False)

    def _settles(self, number: int, fence: int, outcome: Outcome, label: str) -> Move:
        now = self._state.now
        settle = Settle(number, fence, outcome, now, now + _KEPT_FOR)
        early = (self._told(number, outcome),) if self._model.answers_early else ()
        return self._to(of(settle), label, *early)

    def _recovers(self, number: int, fence: int) -> Iterator[Move]:
        """The hook looks whether the effect is there, and cannot always tell."""
        effects = (each for each in self._state.facts if (each.what, each.id) == ("effect", number))
        happened = min((each.fence for each in effects), default=None)
        if happened is None:
            yield self._to(Runs(number, fence, done=False), "learns that it did not happen")
        else:
            outcome = Outcome(Kind.VALUE, body=_value_of(self._process.fingerprint, happened))
            yield self._settles(number, fence, outcome, "finds what has happened")
        if self._state.faults:
            yield self._to(of(Abandon(number, fence)), "cannot tell", **_FAULT)

    # -- what befalls it ---------------------------------------------------------------------

    def _is_killed(self) -> Move:
        """Nothing is left but what is committed. Another process has its place at once."""
        tables, claim, fields = self._state.tables, self._state.tables.claim, dict(_FAULT)
        if claim is not None and claim.owner == self._number:
            fields["tables"] = tables._replace(claim=claim._replace(owner=DEAD))
        return self._move(Process(self._process.fingerprint), "is killed", **fields)

    def _frozen(self) -> Iterator[Move]:
        if not self._process.lapsed and self._model.lapses:
            lapsed = self._process._replace(lapsed=True, excused=True)
            yield self._move(lapsed, "is taken for dead")
        # It beats before it asks for anything: its claims are its own again, if nobody took them.
        back = self._process._replace(frozen=False, lapsed=False)
        yield self._move(back, "goes on")


def _undo_of(request: Request) -> tuple[Sent, ...]:
    """As `stores.writer` undoes a claim that may have been committed."""
    match request:
        case Insert(number) | Replace(_, _, Insert(number)):
            return (of(Release(number, 1)),)
        case Take(number, _, fence):
            return (of(Abandon(number, fence + 1)),)
        case _:
            return ()


def _value_of(fingerprint: bytes, fence: int) -> bytes:
    """What a run answers: no two runs of an operation the same."""
    return fingerprint[:1] + b"%d" % fence
