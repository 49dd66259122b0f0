"""Where a workflow's code is: each call of the context has a position, the same in every replay."""

from __future__ import annotations

import asyncio
import random
from contextvars import ContextVar
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from oncekey.core.errors import InvalidInput, NonDeterministic
from oncekey.core.execution import BRANCH_BITS, Entry, PromiseKind, Step
from oncekey.core.identifier import millisecond_of
from oncekey.durable.embedded.run import Halted
from oncekey.durable.embedded.running import failure_ending

if TYPE_CHECKING:
    from oncekey.durable.embedded.run import Run

_INDEX = (1 << BRANCH_BITS) - 1
# Branches of branches have numbers above this.
_NESTED = 1 << 30
STEP_BY_KIND = {
    PromiseKind.PROMISE: Step.PROMISE,
    PromiseKind.SLEEP: Step.SLEEP,
    PromiseKind.EVENT: Step.EVENT,
    PromiseKind.CALL: Step.CALL,
}


class Branch:
    """One task of the workflow's code: how many calls it has made, and what time it has seen.

    Its path is the same in every replay, in whatever order branches come to the context: which of
    its parent's branches it is, and of which branch its parent is one.
    """

    __slots__ = ("branches", "code", "index", "now", "number", "path", "random")

    def __init__(self, code: object, number: int, path: tuple[int, ...], now: int) -> None:
        self.code = code
        """Which run of which code it is a branch of."""
        self.number = number
        self.path = path
        self.branches = 0
        self.index = 0
        self.now = now
        self.random: random.Random | None = None


# The branch of the task that makes another: tasks inherit the variables of who makes them.
_maker: ContextVar[Branch | None] = ContextVar("oncekey_branch", default=None)


class Positions:
    def __init__(self, run: Run) -> None:
        self._run = run
        self._origin = run.execution.origin or run.execution.id
        self._branches: dict[Any, Branch] = {}
        self._numbers: dict[int, Branch] = {}
        self._code = object()
        self.over = False
        """Whether the code has begun anew: what is left of the old must not go on."""
        self.arguments_differ = run.execution.forked_from is not None
        """Whether a replay may come with other arguments: tokens are never kept, and the id of a
        fork is not that of its source."""

    def branch(self) -> Branch:
        """Of the task that calls. A task gets its place when it first uses the context."""
        task = asyncio.current_task()
        branch = self._branches.get(task)
        if branch is None:
            branch = self._branches[task] = self._new()
            if task is not None and task not in self._run.tasks:
                self._run.tasks.add(task)
                task.add_done_callback(self._run.tasks.discard)
        return branch

    def _new(self) -> Branch:
        if not self._branches:
            branch = Branch(self._code, 0, (), millisecond_of(self._origin))
        else:
            maker = _maker.get()
            parent = self._numbers[0] if maker is None or maker.code is not self._code else maker
            parent.branches += 1
            path = (*parent.path, parent.branches)
            branch = Branch(self._code, self._number_of(path), path, parent.now)
        self._numbers[branch.number] = branch
        _maker.set(branch)
        return branch

    def _number_of(self, path: tuple[int, ...]) -> int:
        """Of a branch of the main one, which it is; of others, one that tells their paths apart."""
        if len(path) == 1:
            return path[0]
        digest = blake2b(repr(path).encode(), digest_size=4).digest()
        number = int.from_bytes(digest) % _NESTED + _NESTED
        while number in self._numbers:
            number = (number + 1) % _NESTED + _NESTED
        return number

    def step(self) -> tuple[Branch, int]:
        """The position of the next call."""
        if self.over:
            raise Halted
        if asyncio.current_task() in self._run.busy:
            raise InvalidInput("a step cannot use the context of its workflow: only the code can")
        branch = self.branch()
        seq = branch.number << BRANCH_BITS | branch.index
        branch.index += 1
        return branch, seq

    def random(self) -> random.Random:
        branch = self.branch()
        if branch.random is None:
            branch.random = random.Random(f"{self._origin}:{branch.number}")  # noqa: S311
        return branch.random

    def known(
        self, branch: Branch, seq: int, step: Step, name: str, fingerprint: bytes
    ) -> Entry | None:
        """What the journal has at this position, if it has what the code now asks for."""
        run = self._run
        entry = run.journal.get(seq)
        if entry is None:
            promise = run.promises.get(seq)
            if promise is None:
                if seq < run.last.get(branch.number, -1):
                    self._does_not_fit(seq, "nothing", _said(step, name))
            elif promise.kind is not PromiseKind.RETRY:
                # What is waited for here must be what the code asks for; a step that was tried in
                # vain has not ended, so that other code may take its place.
                expected = STEP_BY_KIND[promise.kind]
                self._check(
                    seq, (expected, promise.name, promise.fingerprint), step, name, fingerprint
                )
            return None
        self._check(seq, (entry.step, entry.name, entry.fingerprint), step, name, fingerprint)
        return entry

    def _check(
        self, seq: int, kept: tuple[Step, str, bytes], step: Step, name: str, fingerprint: bytes
    ) -> None:
        """What was kept of a position must be what the code asks for there."""
        kept_step, kept_name, kept_fingerprint = kept
        if kept_step is not step or kept_name != name:
            self._does_not_fit(seq, _said(kept_step, kept_name), _said(step, name))
        if kept_fingerprint != fingerprint and not self.arguments_differ:
            self._does_not_fit(seq, _said(step, name), f"{_said(step, name)} with other arguments")

    def check_everything_was_seen(self) -> None:
        """The code has returned: there must be nothing in its journal that it did not ask for."""
        asked = {each.number: each.index for each in self._branches.values()}
        for branch, last in self._run.last.items():
            if last & _INDEX >= asked.get(branch, 0):
                entry = self._run.journal[last]
                self._does_not_fit(last, _said(entry.step, entry.name), "the end")

    def _does_not_fit(self, seq: int, expected: str, came: str) -> None:
        run = self._run
        branch = self._numbers.get(seq >> BRANCH_BITS)
        place = f"step {(seq & _INDEX) + 1}"
        if branch is None:
            place += " of a branch it has no more"
        elif branch.path:
            place += f" of branch {'.'.join(map(str, branch.path))}"
        error = NonDeterministic(
            f"the code of {run.definition.name} does not fit the journal of "
            f"{run.execution.public_id}: at {place} the journal has {expected}, "
            f"the code came to {came}"
        )
        raise run.halt(failure_ending(run, error))


def _said(step: Step, name: str) -> str:
    return step.name.lower() if step is Step.SLEEP else f"{step.name.lower()} {name!r}"
