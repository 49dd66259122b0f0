"""What a workflow waits for: promises it makes, and children it starts, each at its position."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from oncekey.core.answers import Awaited, KeyTaken, Spawned
from oncekey.core.errors import InvalidInput, KeyConflict, KeyReused, OnceKeyError
from oncekey.core.execution import Entry, Promise, PromiseKind, PromiseState, Step
from oncekey.core.ports import Gone
from oncekey.durable.context import Duration, Target
from oncekey.durable.definition import Definition
from oncekey.durable.embedded.asking import PROMISES
from oncekey.durable.embedded.position import STEP_BY_KIND
from oncekey.durable.engine import KEY_TTL
from oncekey.durable.failure import encode_failure, failure_of
from oncekey.durable.retry import seconds_of
from oncekey.durable.values import fingerprint_of

if TYPE_CHECKING:
    from oncekey.durable.embedded.run import Run

_MAX_NAME = 200


class Terms(NamedTuple):
    """What a promise is made with."""

    key: str | None
    key_ttl: Duration | None
    timeout: Duration | None

    @property
    def fingerprint(self) -> bytes:
        return fingerprint_of(self.key or "")

    @property
    def key_lifetime(self) -> float:
        """Seconds the key is good for: as long as the promise may be waited for."""
        if self.key_ttl is not None:
            return seconds_of(self.key_ttl)
        return KEY_TTL if self.timeout is None else max(KEY_TTL, seconds_of(self.timeout))

    @property
    def are_given(self) -> bool:
        return self != (None, None, None)


class Child(NamedTuple):
    """What is called or started."""

    definition: Definition
    body: bytes
    key: str | None
    fingerprint: bytes


class Waits:
    def __init__(self, run: Run) -> None:
        self._run = run
        self._tenant = run.execution.tenant

    async def settled(self, seq: int) -> Entry:
        await self._run.wait(seq)
        return self._run.journal[seq]

    async def make(
        self, seq: int, name: str, terms: Terms, *, token: bytes | None = None, waits: bool = True
    ) -> Entry | None:
        """Make a promise with its key. Answers its entry when it is settled already."""
        run = self._run
        while True:
            promise = self._new(seq, PromiseKind.PROMISE, name, terms.fingerprint, terms.timeout)
            insert = None
            if terms.key is not None:
                keep = round(terms.key_lifetime * 1000)
                insert = run.asking.insert(self._tenant, PROMISES, terms.key, promise.id, keep=keep)
            answer = await run.promise(promise, insert=insert, token=token, waits=waits)
            if isinstance(answer, KeyTaken):
                conflict = KeyConflict(existing_promise_id=answer.promise.public_id)
                return self._refused(_ended(promise), conflict)
            if not isinstance(answer, Gone):
                return answer.entry

    async def sleep(self, seq: int, fingerprint: bytes, seconds: float) -> Entry:
        return await self._await(
            self._new(seq, PromiseKind.SLEEP, "sleep", fingerprint, seconds), None
        )

    async def event(
        self,
        seq: int,
        key: str,
        where: str | None,
        fingerprint: bytes,
        timeout: Duration | None,
        lookback: Duration | None,
    ) -> Entry:
        promise = self._new(seq, PromiseKind.EVENT, checked(key), fingerprint, timeout)
        since = None if lookback is None else seconds_of(lookback)
        return await self._await(promise._replace(topic=key, condition=where), since)

    async def _await(self, promise: Promise, lookback: float | None) -> Entry:
        """Make what is waited for, unless a replay knows it, and wait."""
        run, seq = self._run, promise.seq
        assert seq is not None
        while run.made(seq) is None:
            answer = await run.promise(promise, waits=lookback is None)
            assert not isinstance(answer, KeyTaken)
            if isinstance(answer, Gone):
                promise = promise._replace(id=run.asking.draw())
                continue
            if answer.entry is not None:
                return answer.entry
        made = run.made(seq)
        if made is not None and lookback is not None:
            await self._look_back(made, lookback)
        return await self.settled(seq)

    async def _look_back(self, wait: Promise, lookback: float) -> None:
        """In every replay, and before the run lies down: nobody else would look back if this
        process died now."""
        run, task = self._run, asyncio.current_task()
        assert task is not None
        run.busy.add(task)
        try:
            await run.runs.events.look_back(wait, lookback)
        finally:
            run.busy.discard(task)

    # -- children ------------------------------------------------------------------------

    def child(self, target: Target, args: tuple[Any, ...], key: str | None) -> Child:
        definition, body = self._run.runs.starting.packed(target, args)
        sort = str(int(definition.sort))
        fingerprint = fingerprint_of(sort, definition.name, body, key or "")
        return Child(definition, body, key, fingerprint)

    async def call(self, seq: int, child: Child) -> Entry:
        """Start the child and the wait for it together, unless a replay knows of them."""
        run, runs, name = self._run, self._run.runs, child.definition.name
        while run.made(seq) is None:
            promise = self._new(seq, PromiseKind.CALL, name, child.fingerprint, None)
            start = runs.start_of(self._tenant, child.definition, child.body, child.key)
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
        return await self.settled(seq)

    async def spawn(self, seq: int, child: Child) -> Entry:
        """Start the child and journal its id together."""
        run, runs = self._run, self._run.runs
        while True:
            now = run.asking.clock.now()
            name, fingerprint = child.definition.name, child.fingerprint
            begun = Entry(seq, Step.START, name, fingerprint, False, b"null", 1, now, now)
            start = runs.start_of(self._tenant, child.definition, child.body, child.key)
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

    # -- within --------------------------------------------------------------------------

    def _refused(self, entry: Entry, error: OnceKeyError) -> Entry:
        """A refusal is journaled: a replay must get it as well, whatever is possible by then."""
        refused = entry._replace(failed=True, body=encode_failure(failure_of(error)))
        self._run.record(refused)
        return refused

    def _new(
        self,
        seq: int,
        kind: PromiseKind,
        name: str,
        fingerprint: bytes,
        timeout: Duration | None,
    ) -> Promise:
        asking = self._run.asking
        now = asking.clock.now()
        return Promise(
            asking.draw(),
            self._tenant,
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


def checked(name: str) -> str:
    """A name that can be part of an id, and be read."""
    if not name or len(name) > _MAX_NAME or not name.isprintable():
        raise InvalidInput(f"a name is 1 to {_MAX_NAME} printable characters, not {name[:50]!r}")
    return name


def _ended(promise: Promise) -> Entry:
    assert promise.seq is not None
    return Entry(
        promise.seq,
        STEP_BY_KIND[promise.kind],
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
