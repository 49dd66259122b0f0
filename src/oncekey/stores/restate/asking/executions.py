"""The room of executions: started, advanced, picked up and looked at."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from oncekey.core.answers import Advanced, Existing, Lost, Owned, Picked, Started, Woken
from oncekey.core.errors import StoreUnavailable
from oncekey.core.execution import Entry, Execution, Sort, Status
from oncekey.core.model import Kind, Link, Outcome, Record
from oncekey.core.ports import Gone
from oncekey.core.work import (
    Advance,
    FindExecution,
    HandBack,
    Know,
    Known,
    Lives,
    Load,
    Mine,
    PickUp,
    ReadJournal,
    Start,
    Withdraw,
)
from oncekey.stores.restate import request as requests
from oncekey.stores.restate.asked import Claimed, Claiming, Creation, Told
from oncekey.stores.restate.asking.sizes import Sizes
from oncekey.stores.restate.claims import Room
from oncekey.stores.restate.dispatch import run_service_of
from oncekey.stores.restate.execution import LAZILY, SERVICE
from oncekey.stores.restate.life import Life
from oncekey.stores.restate.link import Link as Line
from oncekey.stores.restate.picking import Busy, Pick
from oncekey.stores.restate.turns import in_turn
from oncekey.stores.restate.work.following import nonce_of
from oncekey.stores.restate.work.held import STANDING

_PAUSE = 0.02


class Executions:
    def __init__(self, line: Line, life: Life) -> None:
        self._line = line
        self._life = life
        self._sizes = Sizes()

    def answers(self) -> Room:
        return {
            Start: self.start,
            Withdraw: lambda asked: self.ask(asked.id, "withdraw", self._line.owner),
            Advance: self.advance,
            HandBack: self._hand_back,
            Pick: self._pick,
            PickUp: self._pick_up,
            Mine: self._mine,
            Load: lambda asked: self.ask(asked.id, "load", asked.fence),
            FindExecution: self._find_execution,
            ReadJournal: self._journal,
            Know: self._know,
            Known: self._known,
            Lives: self._lives,
        }

    async def ask(self, number: int, handler: str, value: Any, **options: Any) -> Any:
        """Something of one execution."""
        return await self._line.call(SERVICE, f"{number:016x}", handler, value, **options)

    async def ask_for_run(self, advance: Advance, handler: str, value: Any) -> Any:
        """As `ask`, on behalf of a run, which may have a journal that is too large to be moved each
        time it goes on."""
        large = self._sizes.is_large(advance.id, advance.entries)
        return await self.ask(advance.id, handler + LAZILY if large else handler, value)

    async def find(self, number: int) -> Execution | None:
        found: Execution | None = await self.ask(number, "find", None)
        return found

    async def advance(self, request: Advance) -> Advanced | Lost:
        answer: Advanced | Lost
        asked = [request, self._line.owner]
        answer, told = await self.ask_for_run(request, "advance", asked)
        if isinstance(answer, Lost) or request.ending is not None:
            self._sizes.forget(request.id)
        if isinstance(answer, Lost) or not told:
            return answer
        return answer._replace(ended=await self.woken(told))

    async def woken(self, told: list[tuple[int, Told]]) -> tuple[Woken, ...]:
        """What the end of an execution means for those who are told of it."""
        answers = [await self.ask(each, "tell", news, nonce=nonce_of(news)) for each, news in told]
        woken = [answer for answer in answers if answer is not None]
        return tuple(sorted(woken, key=lambda each: (each.execution, each.promise)))

    # -- beginning -----------------------------------------------------------------------

    async def start(self, request: Start) -> Started | Existing | Gone:
        """The key is claimed first. Whoever finds it taken by an execution that is not there yet
        waits for it: its claim sees to it, should the process that asked for it die."""
        execution, insert = request
        creation = Creation(execution._replace(key=None), self._line.owner)
        if insert is None:
            made: Started | Gone = await self.ask(execution.id, "create", creation)
            return made
        key = insert.operation.ref.key
        creation = creation._replace(execution=execution._replace(key=key), digest=insert.digest)
        claiming = Claiming(insert, link_of(execution), creation=creation)
        try:
            async with asyncio.timeout(self._line.patience):
                while True:
                    answer = await self._claim(claiming)
                    if answer is not None:
                        return answer
                    await asyncio.sleep(_PAUSE)
        except TimeoutError:
            raise StoreUnavailable("what has the key of a start was not to be found") from None

    async def _claim(self, claiming: Claiming) -> Started | Existing | Gone | None:
        insert, creation = claiming.insert, claiming.creation
        assert creation is not None
        claimed: Claimed = await self.key(insert.digest, "claim", claiming)
        if claimed.record is not None:
            return await self.existing(claimed.record, insert.created_at)
        # Its claim has asked for it as well; that is waited for, unless it was long ago.
        made: Started | Execution | Gone = await self.ask(
            insert.id, "create", creation, nonce=claimed.nonce
        )
        if isinstance(made, Execution):
            record = await self.key(insert.digest, "peek", None)
            return None if record is None else Existing(record, made)
        if isinstance(made, Gone):
            await self.key(insert.digest, "forget", insert.id)
        return made

    async def key(self, digest: bytes, handler: str, value: Any) -> Any:
        """Something of one key."""
        return await self._line.call(requests.SERVICE, digest.hex(), handler, value)

    async def existing(self, record: Record, now: int) -> Existing | None:
        """What a key that is taken stands for; None when that is about to change.

        The truth about an execution is its own: its key is told of its end a moment later.
        """
        execution = await self.find(record.id)
        if record.outcome is not None or record.link is None:
            return Existing(record, execution)
        if execution is None:
            return None
        if not execution.status.is_over:
            return Existing(record, execution)
        digest = record.ref.digest
        settled = settled_by(record, execution)
        if settled is None:
            await self.key(digest, "forget", record.id)
            return None
        if settled.expires_at <= now:
            await self.key(digest, "settle", settled)
            return None
        return Existing(settled, execution)

    # -- from hand to hand ---------------------------------------------------------------

    async def _hand_back(self, request: HandBack) -> int:
        held = request.held
        return sum(await in_turn(self.ask(number, "hand_back", fence) for number, fence in held))

    async def _pick(self, request: Pick) -> Picked | Busy | Lost:
        _, dispatch, gone, *limit = request
        asked = [dispatch, gone, self._line.owner, *limit]
        answer: Picked | Busy | Lost = await self.ask(request.id, "pick", asked)
        if isinstance(answer, Picked):
            self._sizes.loaded(answer)
        return answer

    async def _pick_up(self, request: PickUp) -> list[Picked]:
        """Oldest first."""
        picked: list[Picked] = []
        for number, gone in await self._unowned(request):
            execution = await self.find(number)
            if execution is None or (execution.sort, execution.name) not in request.names:
                continue
            answer = await self.ask(number, "pick", [None, gone, self._line.owner, 0, False, 0])
            picked += [answer] if isinstance(answer, Picked) else []
            if len(picked) == request.limit:
                break
        return picked

    async def _unowned(self, request: PickUp) -> list[tuple[int, int]]:
        """What is READY, and what runs in a process that is gone, which is told as well."""
        ready = await self._standing(f"{Status.READY:d}%", request.only)
        found = [(int(id_, 16), 0) for id_, _, _ in ready]
        for id_, _, standing in await self._standing(f"{Status.RUNNING:d}%", request.only):
            owner = int(standing[1:], 16)
            if await self._life.is_gone(owner):
                found.append((int(id_, 16), owner))
        return sorted(found)

    async def _standing(self, like: str, only: int | None) -> list[tuple[str, str, bytes]]:
        where = f"value_utf8 LIKE '{like}'"
        if only is not None:
            where += f" AND service_key = '{self._line.key(f'{only:016x}')}'"
        return await self._line.states(
            SERVICE, STANDING, where=where, order="service_key", limit=1_000_000
        )

    async def _mine(self, _: Mine) -> list[Owned]:
        like = f"{Status.RUNNING:d}{self._line.owner:016x}"
        rows = await self._standing(like, None)
        found = [await self.find(int(id_, 16)) for id_, _, _ in rows]
        return [
            Owned(each.id, each.fence, each.wakes, each.sort, each.name)
            for each in found
            if each is not None and each.status is Status.RUNNING
        ]

    # -- reading -------------------------------------------------------------------------

    async def _find_execution(self, request: FindExecution) -> Execution | None:
        found = await self.find(request.id)
        return found if found and request.tenant in {None, found.tenant} else None

    async def _journal(self, request: ReadJournal) -> list[Entry]:
        found: list[Entry] = await self.ask(request.id, "journal", None)
        return found

    async def _lives(self, asked: Lives) -> bool:
        return not await self._life.is_gone(asked.owner)

    async def _know(self, _: Know) -> bool:
        """Whoever runs executions of a name serves it."""
        return True

    async def _known(self, _: Known) -> list[tuple[Sort, str]]:
        reply = await self._line.admin.ask("GET", "/services")
        names = [each["name"] for each in msgspec.json.decode(reply.body)["services"]]
        heads = {sort: run_service_of(self._line.space, sort, "") for sort in Sort}
        return [
            (sort, name.removeprefix(head))
            for name in names
            for sort, head in heads.items()
            if name.startswith(head)
        ]


def link_of(execution: Execution) -> Link:
    kind = "task" if execution.sort is Sort.TASK else "workflow"
    return Link(kind, execution.public_id)  # type: ignore[arg-type]


def settled_by(record: Record, execution: Execution) -> Record | None:
    """The record as the end of its execution makes it; None when the key is free."""
    assert execution.expires_at is not None
    if execution.status is Status.SUCCEEDED:
        outcome = Outcome(Kind.VALUE, body=execution.result or b"")
    elif execution.frees_key:
        return None
    else:
        outcome = Outcome(Kind.ERROR, 500, body=execution.result or b"")
    return record._replace(
        outcome=outcome, completed_at=execution.completed_at, expires_at=execution.expires_at
    )
