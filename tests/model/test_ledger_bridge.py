"""Walks through the ledger's model, with every request asked of real stores as well.

Each process of the model is a store of its own on one database. Whatever the model's store answers,
the real one must answer.
"""

import random
from pathlib import Path
from typing import Any

import pytest

from oncekey.core.ports import (
    Abandon,
    Answer,
    Found,
    Insert,
    Peek,
    Purge,
    Release,
    Replace,
    Settle,
    Take,
)
from tests.fixtures.postgres_schema import new_schema
from tests.fixtures.postgres_server import PostgresServer
from tests.fixtures.stores import DAY, Caller, Place, sqlite_url
from tests.model.explorer import Move
from tests.model.ledger import LedgerModel
from tests.model.ledger_process import Asked
from tests.model.ledger_state import DEAD, DIGEST, REF, State, X, Y

# A process that stands still and goes on again is for the tests with real processes.
_NOT_HERE = ("stands still",)


class Bridge:
    """The stores, and which of their numbers each number of the model is."""

    def __init__(self, place: Place, model: LedgerModel, seed: int) -> None:
        self._place = place
        self._model = model
        self._random = random.Random(seed)
        self._began_at = place.clock.now()
        self._callers = [place.open() for _ in model.fingerprints]
        self._numbers: dict[int, int] = {}
        self.asked = 0

    def walk(self, steps: int) -> None:
        state = self._model.initial()
        for _ in range(steps):
            move = self._chosen(state)
            self._follow(state, move)
            state = move.state

    def _chosen(self, state: State) -> Move:
        moves = [each for each in self._model.moves(state) if not each.label.endswith(_NOT_HERE)]
        claim = state.tables.claim
        if claim is not None and claim.owner == DEAD and not state.dead_lapsed:
            # A store that is closed gives up its claims at once.
            return next(each for each in moves if each.label.startswith("the lease"))
        return self._random.choice(moves)

    def _follow(self, state: State, move: Move) -> None:
        number, _, what = move.label.partition(" ")
        match what:
            case "is killed":
                self._callers[int(number) - 1].store.close()
                self._callers[int(number) - 1] = self._place.open()
            case "passes":
                self._place.clock.advance(DAY)
                # Nobody was silent: whoever asks for anything beats first.
                for caller in self._callers:
                    caller.ask(Peek(DIGEST))
            case "operator purges the key":
                assert self._anybody.ask(Purge(DIGEST)) is True
            case "sweep":
                assert self._anybody.store.sweep(self._place.clock.now(), 10) == 1
        if move.asked is not None:
            self._compare(move.asked)

    @property
    def _anybody(self) -> Caller:
        return self._random.choice(self._callers)

    def _compare(self, asked: Asked) -> None:
        self.asked += 1
        answer = self._callers[asked.process - 1].ask(self._real(asked.request))
        assert self._seen(answer) == self._told(asked.answer), asked

    def _real(self, request: Any) -> Any:
        match request:
            case Insert(number, _, _, created_at, expires_at):
                self._numbers[number] = self._anybody.draw()
                times = {"created_at": self._at(created_at), "expires_at": self._at(expires_at)}
                return request._replace(id=self._numbers[number], **times)
            case Replace(number, _, insert):
                old = self._numbers[number]
                return request._replace(old_id=old, insert=self._real(insert))
            case Settle(number, _, _, completed_at, expires_at):
                times = {"completed_at": self._at(completed_at), "expires_at": self._at(expires_at)}
                return request._replace(id=self._numbers[number], **times)
            case Take() | Release() | Abandon():
                # What was lost on its way has no number here, and is undone all the same.
                number = self._numbers.setdefault(request.id, self._anybody.draw())
                return request._replace(id=number)
            case _:
                return request

    def _at(self, time: int) -> int:
        return self._began_at + time * DAY

    def _told(self, answer: Answer) -> Any:
        """The answer of the model, in the terms of the store."""
        if not isinstance(answer, Found):
            return answer
        record, lapsed = answer
        times = self._at(record.created_at), self._at(record.expires_at)
        body = record.outcome.body if record.outcome else None
        return self._numbers[record.id], record.fingerprint, record.fence, *times, body, lapsed

    def _seen(self, answer: Answer) -> Any:
        if not isinstance(answer, Found):
            return answer
        record, lapsed = answer
        body = record.outcome.body if record.outcome else None
        assert record.ref == REF
        times = record.created_at, record.expires_at
        return record.id, record.fingerprint, record.fence, *times, body, lapsed


def compare(url: str, model: LedgerModel, seed: int, steps: int) -> None:
    place = Place(url)
    try:
        bridge = Bridge(place, model, seed)
        bridge.walk(steps)
        assert bridge.asked > steps / 4
    finally:
        place.close()


MUCH: dict[str, Any] = {"fingerprints": (X, X, Y), "faults": 12, "purges": 3, "expires": True}


@pytest.mark.parametrize("seed", range(4))
def test_memory_answers_as_the_model(seed: int) -> None:
    """One process, and none that dies: what is in memory is gone with it."""
    alone = LedgerModel(fingerprints=(X,), faults=0, purges=3, expires=True)
    compare("memory://", alone, seed, 200)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("takeover", ["rerun", "refuse", "recover"])
def test_sqlite_answers_as_the_model(tmp_path: Path, takeover: Any, seed: int) -> None:
    compare(sqlite_url(tmp_path), LedgerModel(takeover, **MUCH), seed, 120)


@pytest.mark.postgres
@pytest.mark.parametrize("seed", range(3))
def test_postgresql_answers_as_the_model(postgres: PostgresServer, seed: int) -> None:
    compare(new_schema(postgres.url()), LedgerModel(**MUCH), seed, 120)
