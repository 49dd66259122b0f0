"""Who breaks things, as the plan says, and writes down what was broken and when."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

from tests.chaos.history import Trouble, Writer, now
from tests.chaos.plan import Act, Deed
from tests.chaos.site.site import Site

# The nemesis itself stood still for so long: then leases may have lapsed without anybody's doing.
_STALL = 1.0
_LOOK = 0.25


def deeds_of(site: Site) -> tuple[list[Deed], list[Deed]]:
    """What can be done to the servers here, and what to everything around them."""
    around: list[Deed] = ["caller-line", "bank-line"]
    if site.database.lines(0):
        around.append("store-line")
    if site.database.restarts:
        around.append("store")
    if site.database.disk.can_fill:
        around.append("disk")
    return ["kill", "kill", "kill-all", "freeze", "nap", "jump"], around


class Nemesis:
    def __init__(self, site: Site, writer: Writer) -> None:
        self._site = site
        self._writer = writer
        self.done: dict[str, int] = {}

    async def rage(self, plan: Iterator[Act]) -> None:
        """One act after the other, until cancelled; what is broken then is mended."""
        for act in plan:
            await asyncio.sleep(act.rest)
            await self._do(act)
            self.done[act.deed] = self.done.get(act.deed, 0) + 1

    async def watch(self) -> None:
        """Note when the whole machine stood still, or was too busy for anybody's heartbeat."""
        while True:
            before = now()
            await asyncio.sleep(_LOOK)
            if now() - before > _STALL:
                self._writer.add(Trouble(before, now(), "stall"))

    async def _do(self, act: Act) -> None:
        site, server = self._site, self._site.servers[act.server]
        match act.deed:
            case "kill":
                async with self.trouble("kill", server.name):
                    server.kill()
                await server.up.wait()
            case "kill-all":
                async with self.trouble("kill"):
                    for each in site.servers:
                        each.kill()
                await asyncio.sleep(0.1)
                await asyncio.gather(*(each.up.wait() for each in site.servers))
            case "freeze" | "nap":
                async with self.trouble(act.deed, server.name):
                    server.freeze()
                    await self._until(act.seconds, server.thaw)
            case "jump":
                async with self.trouble("jump", server.name):
                    server.set_clock(act.by)
                    await self._until(act.seconds, lambda: server.set_clock(0))
            case "caller-line" | "bank-line" | "store-line":
                async with self.trouble(act.deed, server.name):
                    lines = site.lines(act.deed, act.server)
                    for line in lines:
                        line.become(act.how)  # type: ignore[arg-type]
                    await self._until(act.seconds, lambda: [line.mend() for line in lines])
            case "store":
                async with self.trouble("store"):
                    await asyncio.shield(asyncio.to_thread(site.database.restart))
            case "disk":
                async with self.trouble("disk"):
                    site.database.disk.fill()
                    await self._until(act.seconds, site.database.disk.free)

    async def _until(self, seconds: float, mend: object) -> None:
        try:
            await asyncio.sleep(seconds)
        finally:
            mend()  # type: ignore[operator]

    @asynccontextmanager
    async def trouble(self, what: str, server: str = "") -> AsyncIterator[None]:
        """From when this is entered until it is left."""
        began = now()
        try:
            yield
        finally:
            self._writer.add(Trouble(began, now(), what, server))
