"""Control against the table of the design, written down once more: each request key has one effect
and one answer."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from oncekey.core.answers import Advanced, Controlled
from oncekey.core.errors import RequestKeyInvalid
from oncekey.core.execution import Execution, Status
from oncekey.core.work import Control, Forget
from oncekey.durable.embedded.controlling import check_request_key
from tests.fixtures.fuzzing import fuzz
from tests.fixtures.postgres_schema import new_schema
from tests.fixtures.postgres_server import PostgresServer
from tests.fixtures.stores import DAY, Place, sqlite_url
from tests.fixtures.work import FAILURE, PAUSED, Worker, entry, failed, succeeded

KEYS = st.sampled_from("abc")
ACTIONS = st.sampled_from(["cancel", "resume", "fork"])
ENDINGS = {Status.SUCCEEDED: succeeded(), Status.FAILED: failed(), Status.PAUSED: PAUSED}
OVER = {Status.SUCCEEDED, Status.FAILED}


@dataclass
class Known:
    """What is true of a workflow."""

    number: int
    status: Status
    steps: list[str]


@dataclass
class Seen:
    """What is kept under a request key."""

    asked: tuple[str, int, str]
    done: bool
    answer: str
    at: int


class Machine(RuleBasedStateMachine):
    place: ClassVar[Place]
    first: ClassVar[Worker]
    examples: ClassVar[Iterator[int]]

    @initialize()
    def begin_with_nothing(self) -> None:
        self.worker = self.first.of(f"acme-{next(self.examples)}")
        self.stranger = self.first.of("globex")
        self.known: dict[int, Known] = {}
        self.seen: dict[str, Seen] = {}

    @property
    def now(self) -> int:
        return self.place.clock.now()

    @rule(
        steps=st.integers(0, 3),
        becomes=st.sampled_from(
            [Status.RUNNING, Status.PAUSED, Status.PAUSED, Status.SUCCEEDED, Status.FAILED]
        ),
    )
    def start(self, steps: int, becomes: Status) -> None:
        execution = self.worker.start()
        entries = [entry(seq, f"step-{seq}") for seq in range(steps)]
        answer = self.worker.advance(execution, *entries, ending=ENDINGS.get(becomes))
        assert isinstance(answer, Advanced)
        self.known[execution.id] = Known(execution.id, becomes, [each.name for each in entries])

    def asking(self, key: str, action: Any, number: int, from_step: int) -> Control:
        fork = self.worker.draw() if action == "fork" else 0
        parameters = json.dumps({"from_step": from_step} if action == "fork" else {})
        tenant = self.worker.tenant
        return Control(tenant, key, action, number, self.now, parameters, from_step, fork, FAILURE)

    @rule(
        key=KEYS,
        action=ACTIONS,
        which=st.integers(0, 99),
        from_step=st.integers(0, 5),
        twice=st.booleans(),
    )
    def control(self, key: str, action: str, which: int, from_step: int, twice: bool) -> None:
        if not self.known:
            return
        number = list(self.known)[which % len(self.known)]
        asked = [self.asking(key, action, number, from_step) for _ in range(1 + twice)]
        answers = self.worker.caller.ask_all(asked)
        # Two at once are two one after the other, in one order or the other.
        if twice and answers[1].verdict in {"done", "failed"}:
            asked.reverse()
            answers.reverse()
        for one, answer in zip(asked, answers, strict=True):
            self.expect(answer, one)

    @rule(key=KEYS, which=st.integers(0, 99))
    def ask_once_more(self, key: str, which: int) -> None:
        """As a caller does who has not heard the answer."""
        seen = self.seen.get(key)
        if seen is not None:
            action, number, parameters = seen.asked
            step = json.loads(parameters).get("from_step", 0)
            asked = self.asking(key, action, number, step)
            self.expect(self.worker.ask(asked), asked)

    @rule(key=KEYS, action=ACTIONS, which=st.integers(0, 99))
    def meddle(self, key: str, action: Any, which: int) -> None:
        """Another tenant sees neither the workflow nor the key."""
        for number in list(self.known)[:1]:
            fresh = f"{key}-{self.worker.draw()}"
            assert self.stranger.control(
                action, number, fresh, fork=self.worker.draw()
            ) == Controlled("unknown")

    def expect(self, answer: Controlled, asked: Control) -> None:
        key, this = asked.request_key, (asked.action, asked.execution, asked.parameters)
        seen = self.seen.get(key)
        if seen is not None and seen.asked != this:
            assert answer.verdict == "other"
            return
        if seen is not None:
            assert answer.verdict == ("replayed" if seen.done else "failed-before")
            assert answer.answer == seen.answer
            return
        fits = self.effect(asked)
        assert answer.verdict == ("done" if fits else "failed")
        assert ("error" in json.loads(answer.answer)) is not fits
        self.seen[key] = Seen(this, fits, answer.answer, self.now)

    def effect(self, asked: Control) -> bool:
        """What the action does to the workflow, if it can be done."""
        known = self.known[asked.execution]
        match asked.action:
            case "cancel":
                fits = known.status not in OVER
                known.status = Status.CANCELLED if fits else known.status
            case "resume":
                fits = known.status is Status.PAUSED
                known.status = Status.READY if fits else known.status
            case "fork":
                fits = 1 <= asked.from_step <= len(known.steps) + 1
                if fits:
                    steps = known.steps[: asked.from_step - 1]
                    self.known[asked.fork] = Known(asked.fork, Status.READY, steps)
        return fits

    @rule(days=st.sampled_from([0, 1, 4]))
    def pass_days(self, days: int) -> None:
        """Keys of control are kept for seven days."""
        self.place.clock.advance(days * DAY)
        before = self.now - 7 * DAY
        self.worker.ask(Forget(0, before, limit=100_000))
        self.seen = {key: seen for key, seen in self.seen.items() if seen.at > before}

    @invariant()
    def every_workflow_is_what_is_true(self) -> None:
        for known in self.known.values():
            execution: Execution = self.worker.execution(known.number)
            assert execution.status is known.status
            assert [each.name for each in self.worker.journal(known.number)] == known.steps


def check(url: str, few: int) -> None:
    Machine.place = Place(url)
    Machine.first, Machine.examples = Worker(Machine.place.open()), itertools.count(1)
    try:
        run_state_machine_as_test(Machine, settings=fuzz(few, stateful_step_count=25))
    finally:
        Machine.place.close()


def test_in_memory() -> None:
    check("memory://", 40)


def test_on_a_file(tmp_path: Path) -> None:
    check(sqlite_url(tmp_path), 12)


@pytest.mark.postgres
def test_on_postgresql(postgres: PostgresServer) -> None:
    check(new_schema(postgres.url()), 6)


@fuzz()
@given(
    st.text(max_size=210) | st.text(" \t\x00aé€\ud800", max_size=210) | st.none() | st.integers()
)
def test_a_request_key_is_a_text_of_two_hundred_bytes(key: Any) -> None:
    trimmed = key.strip() if isinstance(key, str) else ""
    size = len(trimmed.encode("utf-8", "surrogatepass"))
    storable = not any(each == "\0" or "\ud800" <= each <= "\udfff" for each in trimmed)
    if 0 < size <= 200 and storable:
        assert check_request_key(key) == trimmed
    else:
        with pytest.raises(RequestKeyInvalid):
            check_request_key(key)
