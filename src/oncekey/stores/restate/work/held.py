"""One execution within its object: its state, as the oracle takes it, and what follows from a
change of it elsewhere.

A handler reads the parts it needs, lets the oracle answer, and writes what has changed. Journals
and promises are one state each, so that what is long is never written as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import msgspec

from oncekey.core.execution import (
    Entry,
    Execution,
    Promise,
    PromiseKind,
    PromiseState,
    Status,
)
from oncekey.core.model import NO_FINGERPRINT, Record, Ref
from oncekey.core.scope import Scope
from oncekey.core.work import ENGINE
from oncekey.stores.memory.claims import Claims
from oncekey.stores.memory.kept import Kept
from oncekey.stores.restate.objects import BYTES
from oncekey.stores.restate.values import numbered, pack, unnumbered, unpack
from oncekey.stores.restate.work.calls import id_of

EXECUTION, TIES, STANDING, DUE, UNTIL = "execution", "ties", "standing", "due", "until"
ENTRY, PROMISE, PLACE, NAME, TOKEN = "j:", "p:", "at:", "named:", "t:"
_UNFINISHED = {Status.READY, Status.RUNNING, Status.WAITING}


class Ties(msgspec.Struct, omit_defaults=True):
    """What an execution has to do with others, and with time."""

    dispatch: int = 0
    """How often it became ready, or began to run on its own."""
    digest: str = ""
    """Of its key, in hexadecimal digits."""
    callers: list[tuple[int, int]] = []
    """Who waits for its end: the number of an execution, and of its promise."""
    live: dict[int, int | None] = {}
    """The promises that are pending, and the retries; with the time at which they are due."""
    unregistered: dict[int, str] = {}
    """Promises whose key, event or child does not know of them yet; with the digest of the key, in
    hexadecimal digits."""
    maker: list[int] = []
    """Who made it: a number that another process has drawn as well is not the same start."""
    tick: int | None = None
    """The time at which it is looked at next."""
    deaths: int = 0
    """How many processes have ended while they ran it, under the dispatch `died_at`."""
    died_at: int = 0


_decode_ties = msgspec.json.Decoder(Ties).decode


class KeyEffects(Claims):
    """Stands for the claims, which other objects have: notes what is to become of a key."""

    def __init__(self) -> None:
        super().__init__()
        self.settled: Record | None = None
        self.is_forgotten = False
        self.kept: Kept

    def of(self, number: int) -> Record | None:
        promise = self.kept.promises.get(number)
        execution = self.kept.executions.get(number)
        holder = promise or execution
        if holder is None or holder.key is None or (self.is_forgotten and promise is None):
            return None
        expires_at = 0 if promise is None else promise.key_expires_at or 0
        ref = Ref(Scope("", ""), holder.key)
        return Record(number, ref, NO_FINGERPRINT, ENGINE, 1, "", "", 0, expires_at)

    def put(self, record: Record) -> bool:
        self.settled = record
        return True

    def forget(self, number: int) -> bool:
        self.is_forgotten = True
        return True


class Held:
    """`kept` is for the oracle: it has the execution, and what was read of the rest."""

    def __init__(self, ctx: Any, execution: Execution | None, ties: Ties, owner: int) -> None:
        self.ctx = ctx
        self.number = int(id_of(ctx), 16)
        self.before = execution
        self.ties = ties
        self._ties_before = msgspec.json.encode(ties)
        self.keys = KeyEffects()
        self.kept = self.keys.kept = Kept(self.keys, owner)
        if execution is not None:
            self.kept.executions[self.number] = execution
        self._entries: set[int] = set()
        self._promises: dict[int, Promise] = {}
        self._due_before = self.next_due()
        self.told: list[list[Any]] = []
        """Who waited for its end, and what they are told: the number of each, and `Told`."""
        self.timed: tuple[int | None, int] | None = None
        """When that is due which is made now, and what time it is for its maker."""
        self.is_picked = False
        """Whether it is picked up under its dispatch, so that somebody looks after it."""
        self.is_taken = False
        """Whether it changes hands without one."""

    @property
    def execution(self) -> Execution | None:
        """As it is to be told to others."""
        return self.kept.execution(self.number)

    # -- reading -------------------------------------------------------------------------

    async def entries_at(self, seqs: Iterable[int]) -> None:
        await self._entries_named([f"{ENTRY}{seq:016x}" for seq in seqs])

    async def journal(self) -> None:
        names = await self.ctx.state_keys()
        await self._entries_named([name for name in names if name.startswith(ENTRY)])

    async def _entries_named(self, names: list[str]) -> None:
        for kept in await self._all(names):
            entry: Entry = unpack(kept)
            self._entries.add(entry.seq)
            self.kept.journals.setdefault(self.number, {})[entry.seq] = entry

    async def promises(self, numbers: Iterable[int]) -> None:
        for kept in await self._all([f"{PROMISE}{number:016x}" for number in numbers]):
            promise: Promise = unnumbered(kept)
            self._promises[promise.id] = self.kept.promises[promise.id] = promise

    async def _all(self, names: list[str]) -> list[bytes]:
        """What there is of these states; all are asked for before the first is waited for."""
        asked = [self.ctx.get(name, serde=BYTES) for name in names]
        found = [await each for each in asked]
        return [each for each in found if each is not None]

    async def live(self) -> None:
        await self.promises(list(self.ties.live))

    async def to_settle(self, numbers: Iterable[int]) -> None:
        """Promises, and what the journal has at their positions: a step ends once."""
        await self.promises(numbers)
        await self.entries_at(
            each.seq for each in self.kept.promises.values() if each.seq is not None
        )

    async def promise_at(self, seq: int | None) -> Promise | None:
        if seq is None:
            return None
        return await self._pointed(f"{PLACE}{seq:016x}")

    async def promise_named(self, name: str) -> Promise | None:
        return await self._pointed(name_of(name))

    async def _pointed(self, state: str) -> Promise | None:
        kept = await self.ctx.get(state, serde=BYTES)
        if kept is None:
            return None
        number = int(kept, 16)
        await self.promises([number])
        return self.kept.promises.get(number)

    async def tokens(self) -> list[str]:
        """In hexadecimal digits."""
        names = await self.ctx.state_keys()
        return sorted(name[len(TOKEN) :] for name in names if name.startswith(TOKEN))

    def settled(self) -> dict[int, Promise]:
        """Those that were pending when they were read."""
        return {
            number: promise
            for number, promise in self.kept.promises.items()
            if promise.state is not PromiseState.PENDING
            and number in self._promises
            and self._promises[number].state is PromiseState.PENDING
        }

    # -- small changes -------------------------------------------------------------------

    def registered(self, promise: int) -> None:
        self.ties.unregistered.pop(promise, None)

    def add_token(self, token: bytes) -> None:
        self.ctx.set(f"{TOKEN}{token.hex()}", b"", serde=BYTES)

    def clear_entry(self, seq: int) -> None:
        self.ctx.clear(f"{ENTRY}{seq:016x}")

    # -- writing -------------------------------------------------------------------------

    def save(self) -> None:
        """Everything that has changed, but for what it has to do with others."""
        self._save_entries()
        self._save_promises()
        self._save_execution()
        self._save_due()

    def save_ties(self) -> None:
        ties = msgspec.json.encode(self.ties)
        if ties != self._ties_before:
            self.ctx.set(TIES, ties, serde=BYTES)

    def _save_entries(self) -> None:
        for seq, entry in self.kept.journals.get(self.number, {}).items():
            if seq not in self._entries:
                self.ctx.set(f"{ENTRY}{seq:016x}", pack(entry), serde=BYTES)

    def _save_promises(self) -> None:
        for number, promise in self.kept.promises.items():
            if self._promises.get(number) is not promise:
                self._save_promise(promise, is_new=number not in self._promises)
        for number in sorted(self._promises.keys() - self.kept.promises.keys()):
            self.ctx.clear(f"{PROMISE}{number:016x}")
            self._drop(number)

    def _save_promise(self, promise: Promise, *, is_new: bool) -> None:
        number = promise.id
        self.ctx.set(f"{PROMISE}{number:016x}", numbered(number, promise), serde=BYTES)
        if is_new:
            at = f"{number:016x}".encode()
            self.ctx.set(f"{PLACE}{promise.seq or 0:016x}", at, serde=BYTES)
            if promise.kind is PromiseKind.PROMISE:
                self.ctx.set(name_of(promise.name), at, serde=BYTES)
        pending = promise.state is PromiseState.PENDING
        if pending or promise.kind is PromiseKind.RETRY:
            self.ties.live[number] = promise.due_at if pending else None
        else:
            self._drop(number)

    def _drop(self, number: int) -> None:
        self.ties.live.pop(number, None)
        self.registered(number)

    def _save_execution(self) -> None:
        after = self.kept.executions.get(self.number)
        if after is None or after is self.before:
            return
        if self.keys.is_forgotten:
            after = after._replace(key=None)
        self.ctx.set(EXECUTION, numbered(self.number, after), serde=BYTES)
        standing = f"{int(after.status)}{after.owner:016x}"
        self.ctx.set(STANDING, standing.encode(), serde=BYTES)
        if after.expires_at is not None:
            self.ctx.set(UNTIL, f"{after.expires_at:016x}".encode(), serde=BYTES)

    def next_due(self) -> int | None:
        after = self.kept.executions.get(self.number)
        times = [due_at for due_at in self.ties.live.values() if due_at is not None]
        if after is not None and after.due_at is not None and after.status in _UNFINISHED:
            times.append(after.due_at)
        return min(times, default=None)

    def _save_due(self) -> None:
        """For whoever looks for what is due; the execution itself is told in time."""
        due = self.next_due()
        if due != self._due_before:
            if due is None:
                self.ctx.clear(DUE)
            else:
                self.ctx.set(DUE, f"{due:016x}".encode(), serde=BYTES)


async def held(ctx: Any, owner: int = 0) -> Held:
    """The execution of this object, if there is one."""
    kept, ties = ctx.get(EXECUTION, serde=BYTES), ctx.get(TIES, serde=BYTES)
    execution, tied = await kept, await ties
    return Held(
        ctx,
        None if execution is None else unnumbered(execution),
        Ties() if tied is None else _decode_ties(tied),
        owner,
    )


def name_of(name: str) -> str:
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16)
    return f"{NAME}{digest.hexdigest()}"
