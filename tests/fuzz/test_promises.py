"""Promises against the tables of the design, written down once more: made, resolved by whoever may,
parked, timed out and cancelled, and each of it once."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from oncekey.core.answers import (
    AlreadySettled,
    Awaited,
    KeyExpired,
    KeyTaken,
    Parked,
    RequestKeyReused,
    Settled,
)
from oncekey.core.execution import Execution, PromiseState
from oncekey.core.work import Target
from tests.fixtures.fuzzing import fuzz
from tests.fixtures.postgres_schema import new_schema
from tests.fixtures.postgres_server import PostgresServer
from tests.fixtures.stores import DAY, Place, sqlite_url
from tests.fixtures.work import Worker

PENDING, TIMED_OUT, CANCELLED = PromiseState.PENDING, PromiseState.TIMED_OUT, PromiseState.CANCELLED
LOST = {TIMED_OUT, CANCELLED}
# Mostly the same ones, so that requests meet each other.
TENANTS = st.sampled_from(["acme", "acme", "acme", "globex"])
KEYS = st.sampled_from("aaab")
REQUESTS = st.sampled_from([None, "r", "r", "s"])
BODIES = st.sampled_from([b"1", b'"two"', b"null"])
SETTLING = st.sampled_from([PromiseState.RESOLVED, PromiseState.RESOLVED, PromiseState.REJECTED])
KEEPING = st.sampled_from([10, DAY])


@dataclass
class Made:
    """What is true of a promise."""

    number: int
    tenant: str
    key: str | None
    key_expires: int
    due: int | None
    token: bytes | None
    execution: int | None
    state: PromiseState = PENDING
    body: bytes | None = None
    by: str | None = None


@dataclass
class Waiting:
    """A resolution that came before its promise."""

    state: PromiseState
    body: bytes
    request: str | None
    expires: int


@dataclass
class Used:
    """What a request key was used for: a promise, or a key that nobody had."""

    promise: Made | None
    key: str | None


class Machine(RuleBasedStateMachine):
    place: ClassVar[Place]
    worker: ClassVar[Worker]
    examples: ClassVar[Iterator[int]]

    @initialize()
    def begin_with_nothing(self) -> None:
        number = next(self.examples)
        self.workers = {name: self.worker.of(f"{name}-{number}") for name in ("acme", "globex")}
        self.made: list[Made] = []
        self.held: dict[tuple[str, str], Made] = {}
        """By tenant and key: who had it last."""
        self.parked: dict[tuple[str, str], Waiting] = {}
        self.used: dict[tuple[str, str], Used] = {}
        self.executions: dict[int, Execution] = {}
        self.over: set[int] = set()

    @property
    def now(self) -> int:
        return self.place.clock.now()

    # -- creating with a key -------------------------------------------------------------

    @rule(
        tenant=TENANTS,
        key=st.none() | KEYS,
        kept=KEEPING,
        due=st.sampled_from([None, 5]),
        token=st.booleans(),
    )
    def make(self, tenant: str, key: str | None, kept: int, due: int | None, token: bool) -> None:
        secret = self.worker.draw().to_bytes(32, "big") if token else None
        due_at = None if due is None else self.now + due
        request = self.workers[tenant].making("p", key, kept=kept, token=secret, due_at=due_at)
        answer = self.worker.ask(request)
        made = Made(request.promise.id, tenant, key, self.now + kept, due_at, secret, None)
        if self.expect_made(answer, made):
            # A commit that was not heard of: the same promise.
            again = self.worker.ask(request)
            assert isinstance(again, Awaited)
            assert again.promise.id == made.number

    @rule(tenant=TENANTS, key=st.none() | KEYS, kept=KEEPING)
    def wait(self, tenant: str, key: str | None, kept: int) -> None:
        """As a workflow makes one, and makes it again when it is replayed."""
        execution = self.workers[tenant].start()
        self.executions[execution.id] = execution
        request = self.workers[tenant].awaiting(execution, 0, "p", key=key, kept=kept)
        made = Made(request.promise.id, tenant, key, self.now + kept, None, None, execution.id)
        if self.expect_made(self.worker.ask(request), made):
            again = self.worker.ask(self.workers[tenant].awaiting(execution, 0, "p", key=key))
            assert isinstance(again, Awaited)
            assert again.promise.id == made.number
            assert (again.entry is not None) is (made.state is not PENDING)

    def expect_made(self, answer: Any, made: Made) -> bool:
        place = (made.tenant, made.key or "")
        holder = None if made.key is None else self.held.get(place)
        if holder is not None and holder.key_expires > self.now and holder.state not in LOST:
            assert isinstance(answer, KeyTaken)
            assert answer.promise.id == holder.number
            return False
        assert isinstance(answer, Awaited)
        self.made.append(made)
        if made.key is not None:
            self.held[place] = made
            early = self.parked.pop(place, None)
            if early is not None and early.expires > self.now:
                made.state, made.body, made.by = early.state, early.body, early.request
                if early.request is not None:
                    self.used[made.tenant, early.request].promise = made
        assert answer.promise.state is made.state
        return True

    # -- resolving -----------------------------------------------------------------------

    @rule(
        tenant=TENANTS, key=KEYS, request=REQUESTS, state=SETTLING, body=BODIES,
        park=st.booleans(), kept=KEEPING,
    )  # fmt: skip
    def resolve_by_key(
        self, tenant: str, key: str, request: str | None, state: PromiseState, body: bytes,
        park: bool, kept: int,
    ) -> None:  # fmt: skip
        worker = self.workers[tenant]
        asked = worker.resolving(
            worker.target(key), body, request_key=request, state=state,
            park=key if park else None, park_kept=kept,
        )  # fmt: skip
        answer = self.worker.ask(asked)
        found = self.held.get((tenant, key))
        if found is None:
            self.expect_parked(answer, tenant, key, asked if park else None, self.now + kept)
        else:
            self.expect_resolved(answer, found, asked, by_key=True)

    @rule(
        number=st.integers(0, 99), way=st.sampled_from(["id", "token", "name"]),
        stranger=st.booleans(), request=REQUESTS, state=SETTLING, body=BODIES,
    )  # fmt: skip
    def resolve_otherwise(
        self, number: int, way: str, stranger: bool, request: str | None, state: PromiseState,
        body: bytes,
    ) -> None:  # fmt: skip
        if not self.made:
            return
        made = self.made[number % len(self.made)]
        target = self.target(made, way)
        if target is None:
            return
        if stranger and number % 3 == 0:
            other = "globex" if made.tenant == "acme" else "acme"
            theirs = target._replace(tenant=self.workers[other].tenant)
            assert self.worker.ask(self.workers[other].resolving(theirs, body)) is None
            return
        asked = self.workers[made.tenant].resolving(target, body, request_key=request, state=state)
        self.expect_resolved(self.worker.ask(asked), made, asked, by_key=False)

    def target(self, made: Made, way: str) -> Target | None:
        worker = self.workers[made.tenant]
        match way:
            case "token":
                return None if made.token is None else worker.target(token=made.token)
            case "name" if made.execution is not None:
                return worker.target(execution=made.execution, name="p")
        return worker.target(id=made.number)

    def expect_resolved(self, answer: Any, made: Made, asked: Any, *, by_key: bool) -> None:
        request = asked.settled_by
        used = None if request is None else self.used.get((made.tenant, request))
        if used is not None:
            same = used.promise is made if used.promise else used.key == made.key is not None
            if not same:
                assert isinstance(answer, RequestKeyReused)
                return
            if made.state is not PENDING:
                assert isinstance(answer, AlreadySettled)
                assert answer.promise.body == made.body or made.state in LOST
                assert (answer.again, answer.key_new) == (made.by == request, False)
                return
        if by_key and made.key_expires <= self.now:
            assert isinstance(answer, KeyExpired)
            return
        if request is not None:
            key = made.key if asked.park is not None else None
            self.used[made.tenant, request] = Used(made, key)
        if made.state is not PENDING:
            assert isinstance(answer, AlreadySettled)
            assert answer.promise.state is made.state
            assert answer.again is (request is not None and made.by == request)
            return
        assert isinstance(answer, Settled)
        made.state, made.body, made.by = asked.state, asked.body, request

    def expect_parked(self, answer: Any, tenant: str, key: str, asked: Any, expires: int) -> None:
        if asked is None:
            assert answer is None
            return
        request = asked.settled_by
        used = None if request is None else self.used.get((tenant, request))
        if used is not None and used.key != key:
            assert isinstance(answer, RequestKeyReused)
            return
        early = self.parked.get((tenant, key))
        if request is not None and used is None:
            self.used[tenant, request] = Used(None, key)
        if early is not None and early.expires > self.now:
            assert answer == Parked(early.expires, again=used is not None)
            return
        assert answer == Parked(expires)
        self.parked[tenant, key] = Waiting(asked.state, asked.body, request, expires)

    @rule(body=BODIES, state=SETTLING)
    def resolve_once_more(self, body: bytes, state: PromiseState) -> None:
        """As a caller does who has not heard the answer, or has another idea by now."""
        if self.used:
            (tenant, request), used = list(self.used.items())[-1]
            if used.promise is not None:
                worker = self.workers[tenant]
                target = worker.target(id=used.promise.number)
                asked = worker.resolving(target, body, request_key=request, state=state)
                self.expect_resolved(self.worker.ask(asked), used.promise, asked, by_key=False)

    @rule(number=st.integers(0, 99), bodies=st.permutations([b"1", b"2", b"3"]))
    def resolve_at_once(self, number: int, bodies: list[bytes]) -> None:
        """Exactly one wins; the others see the winner's answer."""
        pending = [each for each in self.made if each.state is PENDING]
        if not pending:
            return
        made = pending[number % len(pending)]
        worker = self.workers[made.tenant]
        asked = [worker.resolving(worker.target(id=made.number), body) for body in bodies]
        answers = self.worker.caller.ask_all(asked)
        won = [
            (one, two) for one, two in zip(asked, answers, strict=True) if isinstance(two, Settled)
        ]
        assert len(won) == 1
        made.state, made.body = PromiseState.RESOLVED, won[0][0].body
        others = [answer for answer in answers if not isinstance(answer, Settled)]
        assert all(isinstance(answer, AlreadySettled) for answer in others)
        assert {answer.promise.body for answer in others} == {made.body}

    # -- time, and ends ------------------------------------------------------------------

    @rule(milliseconds=st.integers(0, 8))
    def pass_time(self, milliseconds: int) -> None:
        self.place.clock.advance(milliseconds)
        while self.worker.due(limit=2).alone:
            continue
        for made in self.made:
            if made.state is PENDING and made.due is not None and made.due <= self.now:
                made.state = TIMED_OUT

    @rule(number=st.integers(0, 99))
    def cancel(self, number: int) -> None:
        waiting = [each for each in self.executions if each not in self.over]
        if not waiting:
            return
        chosen = self.executions[waiting[number % len(waiting)]]
        worker = self.worker.of(chosen.tenant)
        assert worker.control("cancel", chosen, f"cancel-{chosen.id}").verdict == "done"
        self.over.add(chosen.id)
        for made in self.made:
            if made.execution == chosen.id and made.state is PENDING:
                made.state = CANCELLED

    @invariant()
    def every_promise_is_what_is_true(self) -> None:
        for made in self.made:
            worker = self.workers[made.tenant]
            found = worker.promise(id=made.number)
            assert found is not None
            assert found.state is made.state
            assert found.settled_by == made.by or made.state in LOST
            assert found.body == made.body or made.state in LOST
            if made.execution is not None and made.state not in {PENDING, CANCELLED}:
                (entry,) = worker.journal(made.execution)
                assert entry.body == made.body


def check(url: str, few: int) -> None:
    Machine.place = Place(url)
    Machine.worker, Machine.examples = Worker(Machine.place.open()), itertools.count(1)
    try:
        run_state_machine_as_test(Machine, settings=fuzz(few, stateful_step_count=30))
    finally:
        Machine.place.close()


def test_in_memory() -> None:
    check("memory://", 40)


def test_on_a_file(tmp_path: Path) -> None:
    check(sqlite_url(tmp_path), 12)


@pytest.mark.postgres
def test_on_postgresql(postgres: PostgresServer) -> None:
    check(new_schema(postgres.url()), 6)
