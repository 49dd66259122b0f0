"""Explores every state a model can get into, breadth first: the first way to a state is a shortest.

A state is any hashable value. Nothing is drawn at random and nothing is left out, up to the bounds
that the model itself sets.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol


class Move(NamedTuple):
    """One step of one actor, and the state it leads to."""

    label: str
    state: Any
    fair: bool = True
    """Whether it happens in the end, when nothing more goes wrong. A crash is not fair."""
    progress: bool = False
    """Whether somebody got what everybody waits for."""
    asked: Any = None
    """What was asked of the store and answered, for whoever compares that with a real one."""


Invariant = Callable[[Any], bool]


def unlike(processes: Sequence[Any], holder: int) -> Iterable[int]:
    """The numbers of processes without those that are as another one is: what they can do is the
    same. The holder is like nobody."""
    first = {(process, n == holder): n for n, process in reversed([*enumerate(processes, 1)])}
    return sorted(first.values())


def by_name(*invariants: Invariant) -> dict[str, Invariant]:
    """As the documentation calls them: `one_answer` is OneAnswer."""
    return {each.__name__.title().replace("_", ""): each for each in invariants}


class Model(Protocol):
    @property
    def invariants(self) -> Mapping[str, Invariant]:
        """What holds in every state, by name."""
        ...

    @property
    def ending(self) -> str:
        """The name of the promise that progress is always possible."""
        ...

    def initial(self) -> Any: ...

    def moves(self, state: Any) -> Iterable[Move]: ...

    def canonical(self, state: Any) -> Any:
        """One of all the states that differ only in which of several equal actors is which."""
        ...


class Violation(NamedTuple):
    broken: frozenset[str]
    """Every invariant that some state this near to the first one breaks."""
    trace: tuple[str, ...]
    state: Any


class Explored(NamedTuple):
    states: int
    transitions: int
    depth: int
    """Of the state that is farthest from the first one."""
    stuck: int
    """States that nothing leads out of."""
    violation: Violation | None


def explore(model: Model, most: int = 2_000_000) -> Explored:
    """Visit every state, or stop at the first one that breaks an invariant."""
    return _Exploration(model, most).run()


class _Exploration:
    def __init__(self, model: Model, most: int) -> None:
        self._model = model
        self._most = most
        first = model.canonical(model.initial())
        self._numbers = {first: 0}
        self._states = [first]
        self._came = [-1]
        """By number of a state: where from."""
        self._depths = [0]
        self._before: list[list[int]] = [[]]
        """By number of a state: which fair moves lead there from."""
        self._hopeful: list[int] = []
        """States with a fair move that is progress."""
        self._transitions = self._stuck = 0

    def run(self) -> Explored:
        violation = self._search()
        if violation is None:
            violation = self._hopeless(self._model.ending)
        counts = len(self._states), self._transitions, max(self._depths), self._stuck
        return Explored(*counts, violation)

    def _search(self) -> Violation | None:
        """State by state, in the order in which they were found; each depth to its end."""
        broken: dict[str, int] = {}
        number = 0
        while number < len(self._states):
            if broken and self._depths[number] > self._depths[min(broken.values())]:
                break
            for name, holds in self._model.invariants.items():
                if not holds(self._states[number]):
                    broken.setdefault(name, number)
            if not broken:
                self._stuck += not self._expand(number)
            number += 1
        return self._violation(broken, min(broken.values())) if broken else None

    def _expand(self, number: int) -> int:
        """Follow every move; answers how many there are."""
        moves = list(self._model.moves(self._states[number]))
        for move in moves:
            self._visit(number, move)
        return len(moves)

    def _visit(self, number: int, move: Move) -> None:
        self._transitions += 1
        state = self._model.canonical(move.state)
        there = self._numbers.setdefault(state, len(self._states))
        if there == len(self._states):
            assert there < self._most, "the model has no bounds"
            self._states.append(state)
            self._came.append(number)
            self._depths.append(self._depths[number] + 1)
            self._before.append([])
        if move.fair:
            self._before[there].append(number)
            if move.progress:
                self._hopeful.append(number)

    def _hopeless(self, ending: str) -> Violation | None:
        """The first state from which no fair way leads to progress."""
        reached, waiting = set(self._hopeful), deque(self._hopeful)
        while waiting:
            for number in self._before[waiting.popleft()]:
                if number not in reached:
                    reached.add(number)
                    waiting.append(number)
        lost = (number for number in range(len(self._states)) if number not in reached)
        found = next(lost, None)
        return None if found is None else self._violation([ending], found)

    def _violation(self, broken: Iterable[str], number: int) -> Violation:
        """The way there, told of actors that keep their names."""
        way = [number]
        while way[-1]:
            way.append(self._came[way[-1]])
        labels, state = [], self._model.initial()
        for there in reversed(way[:-1]):
            move = next(
                each
                for each in self._model.moves(state)
                if self._model.canonical(each.state) == self._states[there]
            )
            labels.append(move.label)
            state = move.state
        return Violation(frozenset(broken), tuple(labels), state)
