"""The protocol of the ledger: three processes, one store, one key, and all that may go wrong.

What is decided is decided by the product's `decide` and `is_final`, what a store does is done by
its plans. Written here is only what a process does between two requests, as `core/beginning.py`,
`core/claim.py` and `stores/writer.py` have it, and what the world does to it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from oncekey.core import decision
from oncekey.core.model import Operation, Record, Takeover
from oncekey.core.ports import Abandon, Purge, Release, giving_back
from oncekey.stores.administration import Administration
from oncekey.stores.requests import NOBODY, Setting
from oncekey.stores.rows import OWNER_NAME
from tests.model import ledger_invariants
from tests.model.explorer import Invariant, Move, unlike
from tests.model.ledger_process import Turn
from tests.model.ledger_state import (
    DEAD,
    DIGEST,
    REF,
    Fact,
    Idle,
    Process,
    State,
    X,
    is_lapsed,
    tidy,
)
from tests.model.ledger_tables import STATEMENTS, Statement, Transaction


@dataclass(frozen=True)
class LedgerModel:
    """`faults` bounds what goes wrong: kills, processes that stand still, commits in doubt, code
    that is cut off, hooks that cannot tell. What comes after `ending` is for mutants."""

    takeover: Takeover = "rerun"
    fingerprints: tuple[bytes, ...] = (X, X, X)
    """Of what each process is asked."""
    faults: int = 1
    purges: int = 0
    expires: bool = False
    ending: str = ledger_invariants.ENDING

    statements: Mapping[str, Statement] = field(default_factory=lambda: STATEMENTS)
    decide: Callable[[Record, bool, Operation, int], decision.Verdict] = decision.decide
    is_gone: Callable[[State, int], bool] = is_lapsed
    gives_back: Callable[[int, int], Release | Abandon] = giving_back
    runs_early: bool = False
    answers_early: bool = False
    undoes: bool = True
    lapses: bool = True
    asks: bool = True
    in_turn: bool = True
    compares: bool = True

    @property
    def invariants(self) -> dict[str, Invariant]:
        return ledger_invariants.of(self.takeover)

    def initial(self) -> State:
        processes = tuple(Process(fingerprint) for fingerprint in self.fingerprints)
        return State(processes, faults=self.faults, purges=self.purges)

    def moves(self, state: State) -> Iterator[Move]:
        holder = state.tables.claim.owner if state.tables.claim else NOBODY
        for number in unlike(state.processes, holder):
            yield from Turn(self, state, number).moves()
        yield from self._world(state)

    def canonical(self, state: State) -> State:
        """Processes that are asked the same are the same: which is which makes no difference."""
        processes, tables, claim = state.processes, state.tables, state.tables.claim
        holder = claim.owner - 1 if claim is not None else -1
        order = sorted(range(len(processes)), key=lambda at: (hash(processes[at]), at == holder))
        if claim is not None and holder in order:
            owner = order.index(holder) + 1
            tables = tables._replace(claim=claim._replace(owner=owner))
        return state._replace(processes=tuple(processes[at] for at in order), tables=tables)

    def operation(self, fingerprint: bytes) -> Operation:
        return Operation(REF, fingerprint, takeover=self.takeover)

    def setting(self, state: State, asker: int) -> Setting:
        return Setting(asker, lambda row: self.is_gone(state, row[OWNER_NAME]))

    # -- what no process does ----------------------------------------------------------------

    def _world(self, state: State) -> Iterator[Move]:
        claim = state.tables.claim
        dead = claim is not None and claim.owner == DEAD
        if dead and not state.dead_lapsed and self.lapses:
            yield Move("the lease of the dead lapses", state._replace(dead_lapsed=True))
        if self.expires and state.now == 0:
            yield Move("time passes", _later(state), fair=False)
        if state.now > 0:
            yield from self._sweep(state)
        if state.purges and claim is not None:
            yield Move("an operator purges the key", self._purge(state, claim.id), fair=False)

    def _purge(self, state: State, number: int) -> State:
        transaction = Transaction(state.tables, self.statements)
        transaction.ask(Purge(DIGEST), self.setting(state, NOBODY))
        # An operator who purges what is running lets it run twice, and knows it.
        processes = tuple(each._replace(excused=each.phase != Idle()) for each in state.processes)
        facts = state.facts | {Fact("over", number), Fact("purged", number)}
        left = state.purges - 1
        return tidy(
            state._replace(
                tables=transaction.tables(), processes=processes, purges=left, facts=facts
            )
        )

    def _sweep(self, state: State) -> Iterator[Move]:
        transaction = Transaction(state.tables, self.statements)
        setting = self.setting(state, NOBODY)

        def transact(work: Callable[..., Any], **_: bool) -> Any:
            return work(transaction.run)

        if Administration(transact, lambda: setting, lambda name: None).sweep(state.now, 10):
            yield Move("a sweep", tidy(state._replace(tables=transaction.tables())), fair=False)


def _later(state: State) -> State:
    """Every answer that was given is past its time."""
    over = {Fact("over", fact.id) for fact in state.facts if fact.what == "kept"}
    return tidy(state._replace(now=1, facts=state.facts | over))
