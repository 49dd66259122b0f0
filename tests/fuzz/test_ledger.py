"""The ledger against the table of the design, written down once more: who runs, who is answered,
and whose word comes too late."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

import oncekey
from oncekey import Ledger
from oncekey.core.claim import Claim
from oncekey.core.decision import Busy, Decision, Mismatch, Proceed, Replay, Unknown
from oncekey.core.errors import ClaimLost
from oncekey.core.model import Kind, Operation, Outcome, Ref
from oncekey.core.ports import Abandon
from oncekey.core.recovery import CannotTell, DidNotHappen
from oncekey.core.scope import Scope
from oncekey.core.waiting import ThreadWaiter
from tests.fixtures.frozen import FrozenClock
from tests.fixtures.fuzzing import fuzz
from tests.fixtures.postgres_schema import new_schema
from tests.fixtures.postgres_server import PostgresServer
from tests.fixtures.stores import sqlite_url

KEPT = 50
KEYS = st.sampled_from("aab")
WHO = st.integers(0, 1)
PRINTS = st.sampled_from([bytes(16), b"f" * 16])
STATUSES = st.sampled_from([200, 204, 404, 422, 401, 409, 429, 500, 503])
# What the design keeps; of anything else a retry runs again.
FINAL = {200, 204, 404, 422}


@dataclass
class Row:
    """What is true of a key."""

    number: int
    fence: int
    fingerprint: bytes
    expires: int
    holder: "Held | None"
    outcome: Outcome | None = None

    def over(self, now: int) -> bool:
        return (self.outcome is not None or self.holder is None) and self.expires <= now


@dataclass
class Held:
    """A claim that somebody was given; nobody knows whether it is his still."""

    claim: Claim
    who: int
    key: str
    fence: int
    concluded: bool = False


class Machine(RuleBasedStateMachine):
    """One or two processes on a store, and keys of which each is what `rows` says."""

    open: ClassVar[Callable[[FrozenClock], list[Ledger]]]
    numbers: ClassVar[Iterator[int]]

    claims = Bundle("claims")

    @initialize()
    def begin_with_nothing(self) -> None:
        self.clock = FrozenClock()
        self.ledgers = type(self).open(self.clock)
        # What earlier examples left in the store is another's.
        self.namespace = f"t-n{next(self.numbers)}:_tenant:client:a"
        self.rows: dict[str, Row] = {}
        self.held: list[Held] = []

    def teardown(self) -> None:
        for ledger in getattr(self, "ledgers", ()):
            ledger.close(grace=0)

    def ref(self, key: str) -> Ref:
        return Ref(Scope(self.namespace, "POST /orders"), key)

    def ledger(self, who: int) -> Ledger:
        return self.ledgers[who % len(self.ledgers)]

    # -- beginning -----------------------------------------------------------------------

    @rule(
        target=claims,
        who=WHO,
        key=KEYS,
        fingerprint=PRINTS,
        takeover=st.sampled_from(["rerun", "rerun", "refuse", "recover"]),
        finds=st.sampled_from([DidNotHappen(), CannotTell(), Outcome(Kind.RESPONSE, 200)]),
    )
    def begin(
        self, who: int, key: str, fingerprint: bytes, takeover: Any, finds: Any
    ) -> Held | None:
        operation = Operation(self.ref(key), fingerprint, takeover=takeover)
        decision = self.ledger(who).begin(operation, recover=lambda _: finds)
        return self.expect(decision, who, key, operation, finds)

    @rule(target=claims, key=KEYS, early=st.integers(0, 1))
    def begin_at_the_moment_it_expires(self, key: str, early: int) -> Held | None:
        """To the millisecond, which random times seldom find."""
        row = self.rows.get(key)
        if row is not None and row.expires - early > self.clock.now():
            self.clock.advance(row.expires - early - self.clock.now())
        return self.begin(0, key, row.fingerprint if row else bytes(16), "rerun", CannotTell())

    def expect(
        self, decision: Decision, who: int, key: str, operation: Operation, finds: Any
    ) -> Held | None:
        row, now = self.rows.get(key), self.clock.now()
        if row is None or row.over(now):
            return self.proceeds(decision, who, key, operation, 1)
        if row.fingerprint != operation.fingerprint:
            assert isinstance(decision, Mismatch)
            return None
        if row.outcome is not None:
            assert isinstance(decision, Replay)
            assert decision.record.outcome == row.outcome
            return None
        if row.holder is not None:
            assert isinstance(decision, Busy)
            return None
        return self.after_lapse(decision, who, key, row, operation, finds)

    def after_lapse(
        self, decision: Decision, who: int, key: str, row: Row, operation: Operation, finds: Any
    ) -> Held | None:
        """The holder is gone, and the operation says what is to be done then."""
        asks = operation.takeover == "recover"
        if operation.takeover == "refuse":
            assert isinstance(decision, Unknown)
            return None
        if asks and isinstance(finds, Outcome):
            assert isinstance(decision, Replay)
            row.outcome, row.fence = finds, row.fence + 1
            row.expires = self.clock.now() + KEPT
            return None
        if asks and isinstance(finds, CannotTell):
            assert isinstance(decision, Unknown)
            row.fence += 1
            return None
        held = self.proceeds(decision, who, key, operation, row.fence + 1)
        assert held.claim.id == row.number
        self.rows[key].expires = row.expires
        return held

    def proceeds(
        self, decision: Decision, who: int, key: str, operation: Operation, fence: int
    ) -> Held:
        assert isinstance(decision, Proceed)
        claim = decision.claim
        assert claim.fence == fence
        held = Held(claim, who % len(self.ledgers), key, fence)
        self.held.append(held)
        expires = self.clock.now() + KEPT
        self.rows[key] = Row(claim.id, fence, operation.fingerprint, expires, held)
        return held

    # -- concluding ----------------------------------------------------------------------

    def row_of(self, held: Held) -> Row | None:
        """What the claim may write, if it may still."""
        row = self.rows.get(held.key)
        is_his = row is not None and (row.number, row.fence) == (held.claim.id, held.fence)
        return row if is_his and row is not None and row.outcome is None else None

    @rule(held=claims, status=STATUSES, body=st.binary(max_size=9), way=st.sampled_from("scr"))
    def conclude(self, held: Held | None, status: int, body: bytes, way: str) -> None:
        """Settle, conclude or release, also by one whose claim was lost long ago."""
        if held is None or held.concluded:
            return
        row, held.concluded = self.row_of(held), True
        outcome = Outcome(Kind.RESPONSE, status, ((b"a", b"b"),), body)
        acts = {"s": held.claim.settle, "c": held.claim.conclude}
        try:
            held.claim.release() if way == "r" else acts[way](outcome)
        except ClaimLost:
            assert row is None
            return
        assert row is not None
        if way == "s" or (way == "c" and status in FINAL):
            row.outcome, row.holder, row.expires = outcome, None, self.clock.now() + KEPT
        elif held.fence == 1:
            del self.rows[held.key]
        else:
            # Whoever had it before may have done it: it waits for the same request.
            row.holder = None

    @rule(held=claims)
    def die(self, held: Held | None) -> None:
        """Its process is killed under it: it says nothing any more."""
        if held is None or held.concluded:
            return
        row, held.concluded = self.row_of(held), True
        self.let_go(held)
        held.claim.end(None)
        if row is not None:
            row.holder = None

    @rule(held=claims)
    def lapse_behind_its_back(self, held: Held | None) -> None:
        """It is taken for dead, and is not: what it says later comes too late."""
        if held is None or held.concluded:
            return
        row = self.row_of(held)
        self.let_go(held)
        if row is not None:
            row.holder = None

    def let_go(self, held: Held) -> None:
        """As `abandon` does, and not before it is done."""
        done = ThreadWaiter()
        self.ledgers[held.who].store.submit(Abandon(held.claim.id, held.fence), done)
        assert done.wait() in {True, False}

    @rule(who=WHO)
    def end_in_good_order(self, who: int) -> None:
        """A process ends and another begins; what it held lapses."""
        if len(self.ledgers) == 1:
            return
        self.ledgers[who].close(grace=0)
        for held in self.held:
            row = self.row_of(held)
            if held.who == who and row is not None and row.holder is held:
                row.holder = None
            held.concluded = held.concluded or held.who == who
        self.ledgers[who] = type(self).open(self.clock, 1)[0]  # type: ignore[call-arg]

    # -- looking, forgetting and time ----------------------------------------------------

    @rule(who=WHO, key=KEYS)
    def attach(self, who: int, key: str) -> None:
        row, now = self.rows.get(key), self.clock.now()
        found = self.ledger(who).attach(self.ref(key), 0)
        settled = row is not None and row.outcome is not None and not row.over(now)
        assert (found is not None) is settled
        assert found is None or row is None or found.outcome == row.outcome

    @rule(who=WHO, key=KEYS)
    def purge(self, who: int, key: str) -> None:
        assert self.ledger(who).purge(self.ref(key)) is (self.rows.pop(key, None) is not None)

    @rule(who=WHO)
    def sweep(self, who: int) -> None:
        now = self.clock.now()
        over = [key for key, row in self.rows.items() if row.over(now)]
        assert self.ledger(who).sweep() >= len(over)
        for key in over:
            del self.rows[key]

    @rule(milliseconds=st.sampled_from([1, 25, 49, 50]))
    def pass_time(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)

    @invariant()
    def every_process_sees_what_is_true(self) -> None:
        now = self.clock.now()
        for key, ledger in itertools.product("ab", self.ledgers):
            row, found = self.rows.get(key), ledger.look(self.ref(key))
            if row is None or row.over(now):
                assert found is None
                continue
            assert found is not None
            record = found.record
            assert (record.id, record.fence, record.outcome) == (row.number, row.fence, row.outcome)
            assert found.lapsed is (row.outcome is None and row.holder is None)
            assert record.expires_at == row.expires
            assert ledger.peek(record.id) == record


def check(opened: Callable[..., list[Ledger]], few: int) -> None:
    Machine.open, Machine.numbers = staticmethod(opened), itertools.count(1)
    run_state_machine_as_test(Machine, settings=fuzz(few, stateful_step_count=30))


def ledgers_at(url: str, count: int) -> Callable[..., list[Ledger]]:
    def opened(clock: FrozenClock, number: int = count) -> list[Ledger]:
        options = {"clock": clock, "retention": {"interactive": KEPT / 1000}, "sweep_interval": 0}
        return [oncekey.open(url, **options) for _ in range(number)]

    return opened


def test_in_memory() -> None:
    check(ledgers_at("memory://", 1), 40)


def test_two_processes_on_one_file(tmp_path: Path) -> None:
    check(ledgers_at(sqlite_url(tmp_path), 2), 12)


@pytest.mark.postgres
def test_two_processes_on_postgresql(postgres: PostgresServer) -> None:
    check(ledgers_at(new_schema(postgres.url()), 2), 6)
