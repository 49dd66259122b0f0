"""Walks through the promises' model, with every request asked of real stores as well.

Numbers and times are the model's own: both begin with one workflow and nothing else.
"""

import random
from pathlib import Path
from typing import Any

import pytest

from oncekey.core.answers import Ripe, Started
from oncekey.core.execution import Execution, Sort, Status
from oncekey.core.work import Start
from tests.fixtures.postgres_schema import new_schema
from tests.fixtures.postgres_server import PostgresServer
from tests.fixtures.stores import Place, sqlite_url
from tests.model.explorer import Move
from tests.model.promise_state import State
from tests.model.promise_tables import DEAD, EXECUTION, KEEP, TENANT, WORKFLOW
from tests.model.promises import PromiseModel


def alike(answer: Any) -> Any:
    """An answer without what the model does not keep, and without whose something is: processes
    have other numbers in a real store."""
    if isinstance(answer, Execution):
        return answer._replace(owner=0, completed_at=None, expires_at=None)
    if isinstance(answer, Ripe):
        answer = answer._replace(next_at=None)
    if isinstance(answer, tuple) and hasattr(answer, "_fields"):
        return type(answer), *(alike(each) for each in answer)
    return [alike(each) for each in answer] if isinstance(answer, list | tuple) else answer


class Bridge:
    def __init__(self, place: Place, model: PromiseModel, seed: int, *, alone: bool) -> None:
        self._place = place
        self._model = model
        self._random = random.Random(seed)
        self._not_here = ("stands still", "is killed") if alone else ("stands still",)
        one = place.open()
        self._callers = [one] * 3 if alone else [one, place.open(), place.open()]
        execution = Execution(
            EXECUTION, TENANT, Sort.WORKFLOW, WORKFLOW, b"[]", Status.READY, 0, 1, 0, keep=KEEP
        )
        assert isinstance(one.ask(Start(execution)), Started)
        self.asked = 0

    def walk(self, steps: int) -> None:
        state = self._model.initial()
        for _ in range(steps):
            move = self._chosen(state)
            self._follow(move)
            state = move.state

    def _chosen(self, state: State) -> Move:
        found = self._model.moves(state)
        moves = [each for each in found if not each.label.endswith(self._not_here)]
        if state.tables.execution.owner == DEAD and not state.dead_lapsed:
            # A store that is closed gives up what it runs at once.
            return next(each for each in moves if each.label.startswith("the lease"))
        return self._random.choice(moves)

    def _follow(self, move: Move) -> None:
        number, _, what = move.label.partition(" ")
        if what == "is killed":
            self._callers[int(number) - 1].store.close()
            self._callers[int(number) - 1] = self._place.open()
        if move.asked is not None:
            asker, request, answer = move.asked
            self.asked += 1
            assert alike(self._callers[asker - 1].ask(request)) == alike(answer), request


def compare(url: str, seed: int, *, alone: bool = False, steps: int = 40) -> None:
    chosen = random.Random(seed)
    model = PromiseModel(
        ways=("key", chosen.choice(["name", "token", "key"])),
        faults=5,
        cancels=chosen.choice([0, 1]),
        rivals=2,
        timeout=chosen.choice([None, 1, 2]),
        key_ttl=chosen.choice([1, 2, 99]),
        park_ttl=chosen.choice([1, 2]),
        later=3,
    )
    place = Place(url)
    try:
        bridge = Bridge(place, model, seed, alone=alone)
        bridge.walk(steps)
        assert bridge.asked > steps / 4
    finally:
        place.close()


@pytest.mark.parametrize("seed", range(12))
def test_memory_answers_as_the_model(seed: int) -> None:
    """One process in three places: it does not die, and takes nothing from itself."""
    compare("memory://", seed, alone=True)


@pytest.mark.parametrize("seed", range(6))
def test_sqlite_answers_as_the_model(tmp_path: Path, seed: int) -> None:
    compare(sqlite_url(tmp_path), seed)


@pytest.mark.postgres
@pytest.mark.parametrize("seed", range(3))
def test_postgresql_answers_as_the_model(postgres: PostgresServer, seed: int) -> None:
    compare(new_schema(postgres.url()), seed)
