"""The same requests to every store, side by side: all answer alike, and memory is the oracle."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from oncekey.core.model import Kind, Outcome, State
from oncekey.core.ports import (
    Abandon,
    Found,
    Insert,
    Peek,
    Purge,
    Query,
    Release,
    Replace,
    Request,
    Settle,
    Take,
)
from tests.fixtures.postgres_schema import new_schema
from tests.fixtures.postgres_server import PostgresServer
from tests.fixtures.restate_server import RestateServer
from tests.fixtures.stores import Caller, Place, sqlite_url

KEYS = st.sampled_from([f"key-{letter}" for letter in "abcde"])
FENCES = st.integers(1, 4)
FINGERPRINTS = st.sampled_from([bytes(16), b"f" * 16])
OUTCOMES = st.builds(
    Outcome,
    st.sampled_from(Kind),
    st.sampled_from([0, 200, 204, 422, 500]),
    st.lists(st.tuples(st.binary(max_size=4), st.binary(max_size=4)), max_size=3).map(tuple),
    st.binary(max_size=40),
)


def alike(answer: Any) -> Any:
    """An answer without what may differ: owners have other numbers in each store."""
    if isinstance(answer, Found):
        owner = int(answer.record.owner != 0)
        return answer._replace(record=answer.record._replace(owner=owner))
    return [alike(each) for each in answer] if isinstance(answer, list) else answer


class SideBySide(RuleBasedStateMachine):
    places: ClassVar[list[Place]]
    callers: ClassVar[list[Caller]]
    examples: ClassVar[Iterator[int]]

    inserts = Bundle("inserts")

    @initialize()
    def begin(self) -> None:
        # A namespace of its own: what earlier examples left behind is in every store alike.
        self.namespace = f"t-n{next(self.examples)}:_tenant:client:a"
        self.drawn: list[Insert] = []

    def ask(self, request: Request) -> Any:
        return self.compare([caller.ask(request) for caller in self.callers])

    def compare(self, answers: list[Any]) -> Any:
        oracle, *others = [alike(answer) for answer in answers]
        assert others == [oracle] * len(others)
        return oracle

    def draw(self, key: str, fingerprint: bytes, kept: int) -> Insert:
        insert = self.callers[0].insert(
            key, fingerprint=fingerprint, kept=kept, namespace=self.namespace
        )
        self.drawn.append(insert)
        return insert

    def teardown(self) -> None:
        for insert in {insert.digest: insert for insert in self.drawn}.values():
            self.ask(Purge(insert.digest))

    @rule(target=inserts, key=KEYS, fingerprint=FINGERPRINTS, kept=st.integers(1, 50))
    def insert(self, key: str, fingerprint: bytes, kept: int) -> Insert:
        insert = self.draw(key, fingerprint, kept)
        self.ask(insert)
        return insert

    @rule(target=inserts, keys=st.lists(KEYS, unique=True, min_size=2))
    def insert_a_group(self, keys: list[str]) -> Any:
        inserts = [self.draw(key, bytes(16), 30) for key in keys]
        self.compare([caller.ask_all(list(inserts)) for caller in self.callers])
        return multiple(*inserts)

    @rule(insert=inserts)
    def insert_again(self, insert: Insert) -> None:
        self.ask(insert)

    @rule(insert=inserts, key=KEYS)
    def insert_with_a_number_drawn_before(self, insert: Insert, key: str) -> None:
        clash = self.draw(key, bytes(16), 30)._replace(id=insert.id)
        assume(clash.digest != insert.digest)
        self.ask(clash)

    @rule(insert=inserts, fence=FENCES, outcome=OUTCOMES, kept=st.integers(1, 50))
    def settle(self, insert: Insert, fence: int, outcome: Outcome, kept: int) -> None:
        now = self.places[0].clock.now()
        self.ask(Settle(insert.id, fence, outcome, now, now + kept))

    @rule(insert=inserts, outcome=OUTCOMES, kept=st.integers(1, 50))
    def settle_whoever_holds_it(self, insert: Insert, outcome: Outcome, kept: int) -> None:
        found = self.ask(Peek(insert.digest))
        if found is not None:
            now, record = self.places[0].clock.now(), found.record
            self.ask(Settle(record.id, record.fence, outcome, now, now + kept))

    @rule(insert=inserts, fence=FENCES)
    def release(self, insert: Insert, fence: int) -> None:
        self.ask(Release(insert.id, fence))

    @rule(insert=inserts, fence=FENCES)
    def abandon(self, insert: Insert, fence: int) -> None:
        self.ask(Abandon(insert.id, fence))

    @rule(insert=inserts, fence=FENCES)
    def take(self, insert: Insert, fence: int) -> None:
        self.ask(Take(insert.id, insert.digest, fence))

    @rule(insert=inserts)
    def lose_and_take(self, insert: Insert) -> None:
        """The straight way to a higher fence, which random numbers seldom find."""
        found = self.ask(Peek(insert.digest))
        if found is not None:
            self.ask(Abandon(found.record.id, found.record.fence))
            self.ask(Take(found.record.id, insert.digest, found.record.fence))

    @rule(target=inserts, old=inserts, fence=FENCES, kept=st.integers(1, 50))
    def replace(self, old: Insert, fence: int, kept: int) -> Insert:
        new = self.draw(old.operation.ref.key, old.operation.fingerprint, kept)
        self.ask(Replace(old.id, fence, new))
        return new

    @rule(insert=inserts)
    def peek(self, insert: Insert) -> None:
        self.ask(Peek(insert.digest))
        self.ask(Peek(None, insert.id))

    @rule(insert=inserts)
    def purge(self, insert: Insert) -> None:
        self.ask(Purge(insert.digest))

    @rule(milliseconds=st.integers(1, 40))
    def pass_time(self, milliseconds: int) -> None:
        for place in self.places:
            place.clock.advance(milliseconds)

    @invariant()
    def all_lists_are_alike(self) -> None:
        now = self.places[0].clock.now()
        for state in State:
            query = Query(state, namespace=self.namespace)
            self.compare([caller.store.list(query, now) for caller in self.callers])

    @rule(
        state=st.sampled_from([None, *State]),
        prefix=st.sampled_from([None, "key", "key-a", "KEY", "%"]),
        limit=st.integers(1, 10),
        place=st.none() | st.integers(0, 100),
        endpoint=st.sampled_from([None, "POST /orders", "POST /"]),
    )
    def look(
        self,
        state: State | None,
        prefix: str | None,
        limit: int,
        place: int | None,
        endpoint: str | None,
    ) -> None:
        before, after = None, -1
        if place is not None and self.drawn:
            before = self.drawn[place % len(self.drawn)].id
            after = self.drawn[place % 7 % len(self.drawn)].id
        within = self.namespace[: limit * 4]
        query = Query(state, prefix, self.namespace, before, limit, within, endpoint, after)
        now = self.places[0].clock.now()
        self.compare([caller.store.list(query, now) for caller in self.callers])

    @rule(batch=st.integers(1, 4))
    def sweep(self, batch: int) -> None:
        now = self.places[0].clock.now()
        self.compare([caller.store.count_expired(now) for caller in self.callers])
        # Which are first is each store's own affair; that all of them go is not.
        self.compare([_sweep_all(caller, now, batch) for caller in self.callers])

    @rule(interval=st.integers(1, 60))
    def take_a_turn(self, interval: int) -> None:
        now = self.places[0].clock.now()
        self.compare([caller.store.sweep_due(now, interval) for caller in self.callers])

    @rule(name=st.sampled_from(["a", "b"]), seconds=st.floats(0.001, 1e9))
    def set_retention(self, name: str, seconds: float) -> None:
        for caller in self.callers:
            caller.store.set_retention(name, seconds)
        self.compare([caller.store.retention() for caller in self.callers])


def _sweep_all(caller: Caller, now: int, batch: int) -> int:
    swept = list(iter(lambda: caller.store.sweep(now, batch), 0))
    assert all(each <= batch for each in swept)
    return sum(swept)


def compare(urls: list[str], *, examples: int, steps: int) -> None:
    SideBySide.places = [Place(url) for url in urls]
    SideBySide.callers = [place.open() for place in SideBySide.places]
    SideBySide.examples = itertools.count(1)
    try:
        run_state_machine_as_test(
            SideBySide,
            settings=settings(
                max_examples=examples,
                stateful_step_count=steps,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        for place in SideBySide.places:
            place.close()


@pytest.mark.postgres
def test_all_stores_answer_alike(postgres: PostgresServer, tmp_path: Path) -> None:
    urls = ["memory://", sqlite_url(tmp_path), new_schema(postgres.url())]
    compare(urls, examples=40, steps=30)


@pytest.mark.restate
def test_restate_answers_as_the_oracle_does(patient: None, bare_restate: RestateServer) -> None:
    """Fewer: each answer takes its way through a server and back into this process. A list looks
    at all there is, also of others, so that there are none."""
    compare(["memory://", bare_restate.url()], examples=12, steps=20)
