"""Callers: they ask a server, write down what they sent and were told, and ask again as long as
nothing is certain."""

import asyncio
import itertools
import random
from collections.abc import Mapping
from typing import Any

import msgspec

from tests.chaos.history import Answered, GaveUp, Lost, Sent, Writer, now
from tests.chaos.site.site import Site
from tests.fixtures.caller import Answer, acall

# A caller's own deadline for one attempt: some are impatient, and ask elsewhere soon.
DEADLINES = (4.0, 12.0)
_COME_BACK = (0.02, 0.4)
# Told to whoever is to come back; everything else is an answer for good.
_UNDECIDED = frozenset(
    {
        "request-in-progress", "claim-lost", "ledger-unavailable", "upstream-uncertain",
        "upstream-timeout", "upstream-unreachable", "delivery-in-flight", "delivery-failed",
        "delivery-postponed", "secrets-unavailable", "identity-unavailable",
    }
)  # fmt: skip


class Ask(msgspec.Struct, frozen=True):
    """One request, which may be sent any number of times. `raw` is not sent under a key."""

    job: int
    place: str
    who: str
    key: str
    body: str
    path: str
    content: bytes = b"{}"
    headers: Mapping[str, str] = {}
    method: str = "POST"
    keyed: bool = True


class Callers:
    def __init__(self, site: Site, writer: Writer) -> None:
        self._site = site
        self._writer = writer
        self._calls = itertools.count(1)
        self.closing: float | None = None
        """From then on, whoever has no answer for good gives up."""

    async def ask(self, ask: Ask, dice: random.Random) -> Answer | None:
        """Once, any server; None when no answer came."""
        server = dice.choice(self._site.servers)
        call = next(self._calls)
        told = (ask.place, ask.who, ask.key, ask.body, server.name)
        self._writer.add(Sent(now(), call, ask.job, *told))
        key = ask.key if ask.keyed else None
        options: dict[str, Any] = {"method": ask.method, "headers": ask.headers}
        try:
            async with asyncio.timeout(dice.uniform(*DEADLINES)):
                answer = await acall(server.line.port, ask.path, key, body=ask.content, **options)
        except TimeoutError:
            answer = None
        if answer is None:
            self._writer.add(Lost(now(), call, ask.job, "no answer"))
        else:
            self._writer.add(self._answered(call, ask, answer))
        return answer

    async def insist(self, ask: Ask, dice: random.Random) -> Answer | None:
        """Until the answer is one for good; None for somebody who gave up."""
        while True:
            answer = await self.ask(ask, dice)
            if answer is not None and is_for_good(answer):
                return answer
            if self.gives_up(ask):
                return None
            await asyncio.sleep(dice.uniform(*_COME_BACK))

    def gives_up(self, ask: Ask) -> bool:
        """Whether there is no more time, which is written down."""
        if self.closing is None or now() < self.closing:
            return False
        self._writer.add(GaveUp(now(), ask.job, ask.place, ask.who, ask.key))
        return True

    def _answered(self, call: int, ask: Ask, answer: Answer) -> Answered:
        told = answer.header("content-type") or ""
        body = answer.body.decode() if "json" in told else "null"
        return Answered(
            now(), call, ask.job, answer.status, answer.problem, answer.replayed,
            answer.header("x-operation-id") or "", body,
        )  # fmt: skip


def is_for_good(answer: Answer) -> bool:
    return answer.status < 500 and answer.problem not in _UNDECIDED
