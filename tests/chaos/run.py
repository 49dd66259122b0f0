"""One run on one store: open the site, let callers and nemesis loose, mend everything, wait for all
answers, and hand the history to the checker."""

import asyncio
import itertools
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from tests.chaos import history
from tests.chaos.caller import Callers
from tests.chaos.history import Ended, Event, Left, Writer, now
from tests.chaos.jobs.deliveries import forward
from tests.chaos.jobs.flows import cancel, fork, order
from tests.chaos.jobs.requests import request
from tests.chaos.nemesis import Nemesis, deeds_of
from tests.chaos.plan import acts, job
from tests.chaos.site.server import ROOT
from tests.chaos.site.site import Site

SERVERS = 3
CALLERS = 10
# With everything mended, how long an answer for good may take: leases, restarts, retries and rests.
PATIENCE = 90.0

JOBS: dict[str, Callable[[Site, Callers, Any], Any]] = {
    "request": request, "order": order, "cancel": cancel, "fork": fork, "forward": forward,
}  # fmt: skip

Say = Callable[[str], None]


class Setting(NamedTuple):
    store: str
    seconds: float
    seed: str
    source: Path = ROOT / "src"
    kinds: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    deeds: tuple[str, ...] = ()
    keep: Path | None = None
    patience: float = PATIENCE


class Result(NamedTuple):
    events: list[Event]
    jobs: int
    done: Counter[str]
    """How often each deed was done."""


async def run(setting: Setting, say: Say) -> Result:
    folder = Path(tempfile.mkdtemp(prefix="oncekey-chaos-"))
    writer = Writer(folder / "history.jsonl")

    def ended(server: str, told: str) -> None:
        writer.add(Ended(now(), server, told))

    site = Site(setting.store, folder, SERVERS, setting.source, ended)
    try:
        await site.open()
        return await Run(setting, site, writer, say).go()
    finally:
        await site.close()
        if setting.keep is not None:
            _keep(folder, setting.keep)
        shutil.rmtree(folder, ignore_errors=True)


class Run:
    def __init__(self, setting: Setting, site: Site, writer: Writer, say: Say) -> None:
        self._setting, self._site, self._say = setting, site, say
        self._writer = writer
        self._callers = Callers(site, self._writer)
        self._nemesis = Nemesis(site, self._writer)
        self._numbers = itertools.count()
        self._done = 0
        self._open = True

    async def go(self) -> Result:
        callers = [asyncio.create_task(self._work(f"caller {n}")) for n in range(CALLERS)]
        await self._rage()
        self._open = False
        self._say("everything is mended; waiting for the last answers")
        await self._heal()
        self._callers.closing = now() + self._setting.patience
        await asyncio.gather(*callers)
        await self._look_for_leftovers()
        self._writer.close()
        events = history.read(self._site.folder / "history.jsonl", self._site.effects_file)
        events += self._site.database.effects(self._site.folder)
        return Result(sorted(events, key=_at), self._done, Counter(self._nemesis.done))

    async def _work(self, _: str) -> None:
        while self._open:
            number = next(self._numbers)
            setting = self._setting
            mine = job(f"{setting.seed}:jobs", number, setting.kinds, setting.places)
            await JOBS[mine.kind](self._site, self._callers, mine)
            self._done += 1

    async def _rage(self) -> None:
        """Two of them at once: one is after the servers, the other after what is around them."""
        plans = [self._nemesis.rage(plan) for plan in self._plans()]
        tasks = [asyncio.create_task(each) for each in (*plans, self._nemesis.watch())]
        tasks.append(asyncio.create_task(self._tell()))
        done, _ = await asyncio.wait(
            tasks, timeout=self._setting.seconds, return_when=asyncio.FIRST_EXCEPTION
        )
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            task.result()

    def _plans(self) -> Iterator[Any]:
        for name, all_ in zip(("servers", "around"), deeds_of(self._site), strict=True):
            wanted = [
                each for each in all_ if not self._setting.deeds or each in self._setting.deeds
            ]
            if wanted:
                yield acts(f"{self._setting.seed}:{name}", wanted, SERVERS)

    async def _tell(self) -> None:
        began = now()
        while True:
            await asyncio.sleep(10)
            acts_done = sum(self._nemesis.done.values())
            left = max(0.0, self._setting.seconds - (now() - began))
            self._say(f"{self._done} jobs, {acts_done} acts of the nemesis, {left:.0f} s to go")

    async def _heal(self) -> None:
        self._site.mend()
        if self._site.database.restarts:
            # Whatever it was in the middle of, it is there now.
            async with self._nemesis.trouble("store"):
                await asyncio.to_thread(self._site.database.restart)
        await self._site.all_up()

    async def _look_for_leftovers(self) -> None:
        """What is still unfinished although nobody waits for anything any more."""
        headers = {"authorization": f"Bearer {self._site.keys['admin']}"}
        port = self._site.servers[0].line.port
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=30, trust_env=False
        ) as admin:
            for status in ("ready", "running", "paused", "failed"):
                page = (await admin.get("/api/admin/workflows", params={"status": status})).json()
                for each in page["workflows"]:
                    told = f"{each['name']} {each['id']} is {status}: {each.get('error')}"
                    self._writer.add(Left(now(), told, each["input"]["job"]))
                if page["workflows"]:
                    await asyncio.to_thread(self._site.database.dump, self._site.folder)


def _at(event: Event) -> float:
    return event.at


def _keep(folder: Path, where: Path) -> None:
    """What may be looked at later: histories and logs."""
    where.mkdir(parents=True, exist_ok=True)
    for file in (*folder.glob("*.jsonl"), *folder.glob("*.log")):
        with suppress(OSError):
            shutil.copy(file, where / file.name)
