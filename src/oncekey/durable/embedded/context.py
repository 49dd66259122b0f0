"""The context of a workflow on the embedded engine: calls are answered by the journal, or done."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from oncekey.core.errors import InvalidInput, OnceKeyError
from oncekey.core.execution import Entry, Step
from oncekey.core.model import make
from oncekey.durable.context import Context, Duration, Target
from oncekey.durable.embedded.position import Positions
from oncekey.durable.embedded.running import attempt, attempts_of
from oncekey.durable.embedded.waits import Terms, Waits, checked
from oncekey.durable.failure import encode_failure, failure_of
from oncekey.durable.raising import call_failure_of, error_of
from oncekey.durable.retry import Retry, seconds_of
from oncekey.durable.signature import result_type_of
from oncekey.durable.tokens import digest_of, new_token
from oncekey.durable.values import decode, encode, fingerprint_of, fingerprint_of_arguments

if TYPE_CHECKING:
    from oncekey.durable.embedded.run import Run

# Of a promise that has been waited for.
_USED = -1


class EmbeddedContext(Context):
    def __init__(self, run: Run) -> None:
        self.tenant = run.execution.tenant
        self.key = run.execution.key
        self._run = run
        self._positions = Positions(run)
        self._waits = Waits(run)
        self._names: dict[str, int] = {}
        """Promises by name: where each was made."""
        self._tokens: list[tuple[int, bytes]] = []
        self._positions.branch()

    @cached_property
    def id(self) -> str:  # type: ignore[override]  # made when somebody asks for it
        return self._run.execution.public_id

    def check_everything_was_seen(self) -> None:
        """The code has returned: it must have asked for everything that is in its journal."""
        self._positions.check_everything_was_seen()

    def close(self) -> None:
        """The code begins anew, with another context."""
        self._positions.over = True

    # -- doing ---------------------------------------------------------------------------

    async def run(
        self,
        name: str,
        function: Callable[..., Any],
        *args: Any,
        retry: Retry | None = None,
        type: Any = None,  # noqa: A002
    ) -> Any:
        if self._run.must_stop():
            await self._run.stop()
        branch, seq = self._positions.step()
        fingerprint = fingerprint_of_arguments(args)
        kind = result_type_of(function) if type is None else type
        entry = self._positions.known(branch, seq, Step.RUN, name, fingerprint)
        if entry is None:
            entry = await self._do(seq, name, fingerprint, function, args, retry)
        branch.now = entry.at
        if entry.failed:
            raise error_of(entry.body)
        return decode(entry.body, kind, f"the result of the step {name!r}")

    async def _do(
        self,
        seq: int,
        name: str,
        fingerprint: bytes,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        retry: Retry | None,
    ) -> Entry:
        run = self._run
        checked(name)
        if self._tokens:
            await self._hand_out_tokens()
        started_at = run.asking.clock.now()
        failed = False
        try:
            value = await attempt(run, seq, name, function, args, retry or run.definition.retry)
            body = encode(value, f"the result of the step {name!r}")
        except OnceKeyError as error:
            if error.retryable:
                raise
            failed, body = True, encode_failure(failure_of(error))
        at, tries = run.asking.clock.now(), attempts_of(run, seq)
        row = (seq, Step.RUN, name, fingerprint, failed, body, tries, started_at, at)
        entry = make(Entry, row)
        run.record(entry)
        return entry

    async def call(self, target: Target, *args: Any, key: str | None = None) -> Any:
        if self._run.must_stop():
            await self._run.stop()
        branch, seq = self._positions.step()
        child = self._waits.child(target, args, key)
        name = child.definition.name
        entry = self._positions.known(branch, seq, Step.CALL, name, child.fingerprint)
        if entry is None:
            await self._hand_out_tokens()
            entry = await self._waits.call(seq, child)
        branch.now = entry.at
        if entry.failed:
            raise call_failure_of(entry.body, name)
        return decode(entry.body, child.definition.signature.result, f"the result of {name}")

    async def start(self, target: Target, *args: Any, key: str | None = None) -> str:
        if self._run.must_stop():
            await self._run.stop()
        branch, seq = self._positions.step()
        child = self._waits.child(target, args, key)
        name = child.definition.name
        entry = self._positions.known(branch, seq, Step.START, name, child.fingerprint)
        if entry is None:
            await self._hand_out_tokens()
            entry = await self._waits.spawn(seq, child)
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
        terms = Terms(key, key_ttl, timeout)
        made = self._names.get(name, _USED)
        if made != _USED:
            if terms.are_given:
                raise InvalidInput(f"promise {name!r}: give key and timeout to token(), not again")
            self._names[name] = _USED
            entry = await self._waits.settled(made)
        else:
            self._name(name, _USED)
            entry = await self._new_promise(name, terms)
        self._positions.branch().now = entry.at
        if entry.failed:
            raise error_of(entry.body)
        return decode(entry.body, type, f"the value of the promise {name!r}")

    async def _new_promise(self, name: str, terms: Terms) -> Entry:
        if self._run.must_stop():
            await self._run.stop()
        branch, seq = self._positions.step()
        entry = self._positions.known(branch, seq, Step.PROMISE, name, terms.fingerprint)
        if entry is None and self._run.made(seq) is None:
            entry = await self._waits.make(seq, name, terms)
        return entry if entry is not None else await self._waits.settled(seq)

    async def token(
        self,
        name: str,
        *,
        key: str | None = None,
        key_ttl: Duration | None = None,
        timeout: Duration | None = None,
    ) -> str:
        run, terms, token = self._run, Terms(key, key_ttl, timeout), new_token()
        if self._run.must_stop():
            await self._run.stop()
        branch, seq = self._positions.step()
        self._name(name, seq)
        entry = self._positions.known(branch, seq, Step.PROMISE, name, terms.fingerprint)
        self._positions.arguments_differ = True
        if entry is None and run.made(seq) is not None:
            self._tokens.append((seq, digest_of(token)))
        elif entry is None:
            await run.durable()
            digest = digest_of(token)
            entry = await self._waits.make(seq, name, terms, token=digest, waits=False)
            if entry is not None and entry.failed:
                raise error_of(entry.body)
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
        if self._run.must_stop():
            await self._run.stop()
        branch, seq = self._positions.step()
        fingerprint = fingerprint_of(key, where or "")
        entry = self._positions.known(branch, seq, Step.EVENT, key, fingerprint)
        if entry is None:
            self._run.runs.events.check(key, where)
            entry = await self._waits.event(seq, key, where, fingerprint, timeout, lookback)
        branch.now = entry.at
        if entry.failed:
            raise error_of(entry.body)
        return decode(entry.body, type, f"the data of the event {key!r}")

    async def sleep(self, duration: Duration) -> None:
        if self._run.must_stop():
            await self._run.stop()
        branch, seq = self._positions.step()
        seconds = seconds_of(duration)
        fingerprint = fingerprint_of(str(round(seconds * 1000)))
        entry = self._positions.known(branch, seq, Step.SLEEP, "sleep", fingerprint)
        if entry is None:
            entry = await self._waits.sleep(seq, fingerprint, seconds)
        branch.now = entry.at

    # -- the same in every replay --------------------------------------------------------

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._positions.branch().now / 1000, UTC)

    def random(self) -> random.Random:
        return self._positions.random()

    def uuid(self) -> uuid.UUID:
        return uuid.UUID(int=self.random().getrandbits(128), version=4)

    # -- within --------------------------------------------------------------------------

    def _name(self, name: str, seq: int) -> None:
        if name in self._names:
            raise InvalidInput(f"the promise name {name!r} is used twice in one workflow")
        self._names[checked(name)] = seq

    async def _hand_out_tokens(self) -> None:
        """Tokens of promises a replay found made: good before anybody can use them."""
        tokens, self._tokens = self._tokens, []
        for seq, digest in tokens:
            await self._run.add_token(seq, digest)
