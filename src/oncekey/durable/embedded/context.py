"""The context of a workflow on the embedded engine: each call has a position in the journal."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from oncekey.core.errors import (
    InvalidInput,
    KeyConflict,
    KeyReused,
    NonDeterministic,
    OnceKeyError,
    TerminalError,
)
from oncekey.core.execution import (
    BRANCH_BITS,
    Entry,
    Promise,
    PromiseKind,
    PromiseState,
    Step,
)
from oncekey.core.identifier import millisecond_of
from oncekey.core.model import make
from oncekey.core.ports import Gone
from oncekey.core.work import Awaited, KeyTaken, Spawned
from oncekey.durable.context import Context, Duration, Target
from oncekey.durable.definition import Definition
from oncekey.durable.embedded.asking import PROMISES
from oncekey.durable.embedded.running import attempt, attempts_of, failure_ending
from oncekey.durable.engine import KEY_TTL
from oncekey.durable.failure import encode_failure, failure_of
from oncekey.durable.raising import call_failure_of, error_of
from oncekey.durable.retry import Retry, seconds_of
from oncekey.durable.signature import result_type_of
from oncekey.durable.tokens import digest_of, new_token
from oncekey.durable.values import decode, encode, fingerprint_of, fingerprint_of_arguments

if TYPE_CHECKING:
    from oncekey.durable.embedded.run import Run

_MAX_NAME = 200
_INDEX = (1 << BRANCH_BITS) - 1


class _Branch:
    """One task of the workflow's code, and how many calls it has made."""

    __slots__ = ("index", "now", "number", "random")

    def __init__(self, number: int, now: int) -> None:
        self.number = number
        self.index = 0
        self.now = now
        self.random: random.Random | None = None


class _Child(NamedTuple):
    """What is called or started."""

    definition: Definition
    body: bytes
    key: str | None
    fingerprint: bytes


class EmbeddedContext(Context):
    def __init__(self, run: Run) -> None:
        execution = run.execution
        self.id = execution.public_id
        self.tenant = execution.tenant
        self.key = execution.key
        self._run = run
        self._origin = execution.origin or execution.id
        self._began = millisecond_of(self._origin)
        self._branches: dict[Any, _Branch] = {}
        self._names: dict[str, int] = {}
        """Promises by name: where each was made."""
        self._tokens: list[tuple[int, bytes]] = []
        self._hands_out_tokens = False
        self._branch()

    # -- doing ---------------------------------------------------------------------------

    async def run(
        self,
        name: str,
        function: Callable[..., Any],
        *args: Any,
        retry: Retry | None = None,
        type: Any = None,  # noqa: A002
    ) -> Any:
        run = self._run
        branch, seq = self._step()
        fingerprint = fingerprint_of_arguments(args)
        kind = result_type_of(function) if type is None else type
        entry = self._known(branch, seq, Step.RUN, name, fingerprint)
        if entry is None:
            if self._tokens:
                await self._hand_out_tokens()
            started_at = run.asking.clock.now()
            failed = False
            try:
                value = await attempt(run, seq, name, function, args, retry or run.definition.retry)
                body = encode(value, f"the result of the step {name!r}")
            except TerminalError as error:
                failed, body = True, encode_failure(failure_of(error))
            at = run.asking.clock.now()
            entry = make(
                Entry,
                (
                    seq,
                    Step.RUN,
                    name,
                    fingerprint,
                    failed,
                    body,
                    attempts_of(run, seq),
                    started_at,
                    at,
                ),
            )
            run.record(entry)
        branch.now = entry.at
        if entry.failed:
            raise error_of(entry.body)
        return decode(entry.body, kind, f"the result of the step {name!r}")

    async def call(self, target: Target, *args: Any, key: str | None = None) -> Any:
        branch, seq = self._step()
        child = self._child(target, args, key)
        name = child.definition.name
        entry = self._known(branch, seq, Step.CALL, name, child.fingerprint)
        if entry is None:
            await self._hand_out_tokens()
            entry = await self._call(seq, child)
        branch.now = entry.at
        if entry.failed:
            raise call_failure_of(entry.body, name)
        return decode(entry.body, child.definition.signature.result, f"the result of {name}")

    async def start(self, target: Target, *args: Any, key: str | None = None) -> str:
        branch, seq = self._step()
        child = self._child(target, args, key)
        entry = self._known(branch, seq, Step.START, child.definition.name, child.fingerprint)
        if entry is None:
            await self._hand_out_tokens()
            entry = await self._spawn(seq, child)
        branch.now = entry.at
        if entry.failed:
            raise error_of(entry.body)
        return str(decode(entry.body, str, "the id of what was started"))

    # -- waiting -------------------------------------------------------------------------

    async def promise(
        self,
        name: str,
        *,
        key: str | None = None,
        key_ttl: Duration | None = None,
        timeout: Duration | None = None,
        type: Any = None,  # noqa: A002
    ) -> Any:
        made = self._names.get(name)
        if made is not None and made >= 0:
            if key is not None or timeout is not None or key_ttl is not None:
                raise InvalidInput(f"promise {name!r}: give key and timeout to token(), not again")
            self._names[name] = -1
            entry = await self._settled(made)
        else:
            self._name(name, -1)
            entry = await self._new_promise(name, key, key_ttl, timeout)
        self._branch().now = entry.at
        if entry.failed:
            raise error_of(entry.body)
        return decode(entry.body, type, f"the value of the promise {name!r}")

    async def token(
        self,
        name: str,
        *,
        key: str | None = None,
        key_ttl: Duration | None = None,
        timeout: Duration | None = None,
    ) -> str:
        run = self._run
        branch, seq = self._step()
        self._name(name, seq)
        token = new_token()
        self._hands_out_tokens = True
        fingerprint = fingerprint_of(key or "")
        if self._known(branch, seq, Step.PROMISE, name, fingerprint) is not None:
            return token
        if seq in run.promises:
            self._tokens.append((seq, digest_of(token)))
            return token
        await run.durable()
        answer = await self._make(
            seq, name, fingerprint, key, key_ttl, timeout, token=digest_of(token), waits=False
        )
        if isinstance(answer, Entry) and answer.failed:
            raise error_of(answer.body)
        return token

    async def event(
        self,
        key: str,
        *,
        where: str | None = None,
        timeout: Duration | None = None,
        lookback: Duration | None = None,
        type: Any = None,  # noqa: A002
    ) -> Any:
        run = self._run
        branch, seq = self._step()
        fingerprint = fingerprint_of(key, where or "")
        entry = self._known(branch, seq, Step.EVENT, key, fingerprint)
        if entry is None:
            run.runs.events.check(key, where)
            promise = self._promise(
                seq, PromiseKind.EVENT, _checked(key), fingerprint, timeout=timeout
            )._replace(topic=key, condition=where)
            since = None if lookback is None else seconds_of(lookback)
            entry = await self._await(promise, lookback=since)
        branch.now = entry.at
        if entry.failed:
            raise error_of(entry.body)
        return decode(entry.body, type, f"the data of the event {key!r}")

    async def sleep(self, duration: Duration) -> None:
        branch, seq = self._step()
        seconds = seconds_of(duration)
        fingerprint = fingerprint_of(str(round(seconds * 1000)))
        entry = self._known(branch, seq, Step.SLEEP, "sleep", fingerprint)
        if entry is None:
            promise = self._promise(seq, PromiseKind.SLEEP, "sleep", fingerprint, timeout=seconds)
            entry = await self._await(promise)
        branch.now = entry.at

    # -- the same in every replay --------------------------------------------------------

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._branch().now / 1000, UTC)

    def random(self) -> random.Random:
        branch = self._branch()
        if branch.random is None:
            branch.random = random.Random(f"{self._origin}:{branch.number}")  # noqa: S311
        return branch.random

    def uuid(self) -> uuid.UUID:
        return uuid.UUID(int=self.random().getrandbits(128), version=4)

    # -- positions -----------------------------------------------------------------------

    def _branch(self) -> _Branch:
        """Of the task that calls. A task gets its number when it first uses the context."""
        task = asyncio.current_task()
        branch = self._branches.get(task)
        if branch is None:
            last = max((each.now for each in self._branches.values()), default=self._began)
            branch = self._branches[task] = _Branch(len(self._branches), last)
            if task is not None and task not in self._run.tasks:
                self._run.tasks.add(task)
                task.add_done_callback(self._run.tasks.discard)
        return branch

    def _step(self) -> tuple[_Branch, int]:
        branch = self._branch()
        seq = branch.number << BRANCH_BITS | branch.index
        branch.index += 1
        return branch, seq

    def _known(
        self, branch: _Branch, seq: int, step: Step, name: str, fingerprint: bytes
    ) -> Entry | None:
        """What the journal has at this position, if it has what the code now asks for."""
        run = self._run
        entry = run.journal.get(seq)
        if entry is None:
            if seq < run.last.get(branch.number, -1) and seq not in run.promises:
                self._does_not_fit(seq, "nothing", _said(step, name))
            return None
        if entry.step is not step or entry.name != name:
            self._does_not_fit(seq, _said(entry.step, entry.name), _said(step, name))
        # A replay cannot know the tokens of the run before it: they may be in any argument.
        if entry.fingerprint != fingerprint and not self._hands_out_tokens:
            self._does_not_fit(seq, _said(step, name), f"{_said(step, name)} with other arguments")
        return entry

    def check_everything_was_seen(self) -> None:
        """The code has returned: there must be nothing in its journal that it did not ask for."""
        asked = {each.number: each.index for each in self._branches.values()}
        for branch, last in self._run.last.items():
            if last & _INDEX >= asked.get(branch, 0):
                entry = self._run.journal[last]
                self._does_not_fit(last, _said(entry.step, entry.name), "the end")

    def _does_not_fit(self, seq: int, expected: str, came: str) -> None:
        branch, index = seq >> BRANCH_BITS, seq & _INDEX
        place = f"step {index + 1}" + (f" of branch {branch}" if branch else "")
        run = self._run
        error = NonDeterministic(
            f"the code of {run.definition.name} does not fit the journal of {self.id}: at {place} "
            f"the journal has {expected}, the code came to {came}"
        )
        raise run.halt(failure_ending(run, error))

    # -- promises ------------------------------------------------------------------------

    def _name(self, name: str, seq: int) -> None:
        if name in self._names:
            raise InvalidInput(f"the promise name {name!r} is used twice in one workflow")
        self._names[_checked(name)] = seq

    async def _new_promise(
        self,
        name: str,
        key: str | None,
        key_ttl: Duration | None,
        timeout: Duration | None,
    ) -> Entry:
        branch, seq = self._step()
        fingerprint = fingerprint_of(key or "")
        entry = self._known(branch, seq, Step.PROMISE, name, fingerprint)
        if entry is not None:
            return entry
        if seq in self._run.promises:
            return await self._settled(seq)
        made = await self._make(seq, name, fingerprint, key, key_ttl, timeout)
        return made if made is not None else await self._settled(seq)

    async def _make(
        self,
        seq: int,
        name: str,
        fingerprint: bytes,
        key: str | None,
        key_ttl: Duration | None,
        timeout: Duration | None,
        *,
        token: bytes | None = None,
        waits: bool = True,
    ) -> Entry | None:
        """Make a promise with its key. Answers its entry when it is settled already."""
        run = self._run
        ttl = key_lifetime(key_ttl, timeout)
        while True:
            promise = self._promise(seq, PromiseKind.PROMISE, name, fingerprint, timeout=timeout)
            insert = None
            if key is not None:
                insert = run.asking.insert(
                    self.tenant, PROMISES, key, promise.id, keep=round(ttl * 1000)
                )
            answer = await run.promise(promise, insert=insert, token=token, waits=waits)
            if isinstance(answer, KeyTaken):
                conflict = KeyConflict(existing_promise_id=answer.promise.public_id)
                return self._refused(_ended(promise), conflict)
            if not isinstance(answer, Gone):
                return answer.entry

    async def _await(self, promise: Promise, *, lookback: float | None = None) -> Entry:
        """Make what is waited for, unless a replay knows it, and wait."""
        run, seq = self._run, promise.seq
        assert seq is not None
        while seq not in run.promises:
            answer = await run.promise(promise)
            assert not isinstance(answer, KeyTaken)
            if isinstance(answer, Gone):
                promise = promise._replace(id=run.asking.draw())
                continue
            if answer.entry is not None:
                return answer.entry
            if lookback is not None:
                run.runs.background(run.runs.events.look_back(answer.promise, lookback))
        return await self._settled(seq)

    # -- children ------------------------------------------------------------------------

    def _child(self, target: Target, args: tuple[Any, ...], key: str | None) -> _Child:
        definition, body = self._run.runs.starting.packed(target, args)
        sort = str(int(definition.sort))
        fingerprint = fingerprint_of(sort, definition.name, body, key or "")
        return _Child(definition, body, key, fingerprint)

    async def _call(self, seq: int, child: _Child) -> Entry:
        """Start the child and the wait for it together, unless a replay knows of them."""
        run, runs = self._run, self._run.runs
        while seq not in run.promises:
            promise = self._promise(seq, PromiseKind.CALL, child.definition.name, child.fingerprint)
            start = runs.start_of(self.tenant, child.definition, child.body, child.key)
            try:
                answer = await run.promise(promise, start=start)
            except BaseException:
                runs.release(start)
                raise
            if isinstance(answer, Awaited) and answer.started is not None:
                runs.spawned(start)
            else:
                runs.release(start)
            if isinstance(answer, Gone | KeyTaken):
                continue
            if answer.child is not None and answer.promise.target is None:
                return self._refused(_ended(promise), _reused(child.key))
            if answer.entry is not None:
                return answer.entry
        return await self._settled(seq)

    async def _spawn(self, seq: int, child: _Child) -> Entry:
        run, runs = self._run, self._run.runs
        while True:
            now = run.asking.clock.now()
            name, fingerprint = child.definition.name, child.fingerprint
            begun = Entry(seq, Step.START, name, fingerprint, False, b"null", 1, now, now)
            start = runs.start_of(self.tenant, child.definition, child.body, child.key)
            try:
                answer = await run.spawn(start, begun)
            except BaseException:
                runs.release(start)
                raise
            if isinstance(answer, Spawned) and answer.is_new:
                runs.spawned(start)
            else:
                runs.release(start)
            if isinstance(answer, Spawned):
                refused = not answer.is_journaled
                return self._refused(begun, _reused(child.key)) if refused else answer.entry

    async def _settled(self, seq: int) -> Entry:
        await self._run.wait(seq)
        return self._run.journal[seq]

    def _refused(self, entry: Entry, error: OnceKeyError) -> Entry:
        """A refusal is journaled: a replay must get it as well, whatever is possible by then."""
        refused = entry._replace(failed=True, body=encode_failure(failure_of(error)))
        self._run.record(refused)
        return refused

    def _promise(
        self,
        seq: int,
        kind: PromiseKind,
        name: str,
        fingerprint: bytes,
        *,
        timeout: Duration | None = None,
    ) -> Promise:
        asking = self._run.asking
        now = asking.clock.now()
        return Promise(
            asking.draw(),
            self.tenant,
            kind,
            name,
            PromiseState.PENDING,
            now,
            self._run.id,
            seq,
            self._run.execution.sort,
            fingerprint,
            due_at=None if timeout is None else now + round(seconds_of(timeout) * 1000),
        )

    async def _hand_out_tokens(self) -> None:
        """Tokens of promises a replay found made: good before anybody can use them."""
        tokens, self._tokens = self._tokens, []
        for seq, digest in tokens:
            await self._run.add_token(seq, digest)


def key_lifetime(key_ttl: Duration | None, timeout: Duration | None) -> float:
    """Seconds a promise's key is good for: as long as the promise may be waited for."""
    if key_ttl is not None:
        return seconds_of(key_ttl)
    return KEY_TTL if timeout is None else max(KEY_TTL, seconds_of(timeout))


def _checked(name: str) -> str:
    if not name or len(name) > _MAX_NAME or not name.isprintable():
        raise InvalidInput(f"a name is 1 to {_MAX_NAME} printable characters, not {name[:50]!r}")
    return name


def _ended(promise: Promise) -> Entry:
    steps = {PromiseKind.CALL: Step.CALL}
    assert promise.seq is not None
    return Entry(
        promise.seq,
        steps.get(promise.kind, Step.PROMISE),
        promise.name,
        promise.fingerprint,
        True,
        b"null",
        1,
        promise.created_at,
        promise.created_at,
    )


def _reused(key: str | None) -> KeyReused:
    return KeyReused(f"the key {key!r} was first used with another name or input")


def _said(step: Step, name: str) -> str:
    return step.name.lower() if step is Step.SLEEP else f"{step.name.lower()} {name!r}"
