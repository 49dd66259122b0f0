"""Workflows: started by key by several callers, resolved by several others, early and late, and
controlled by operators who click twice."""

import asyncio
import json
import random
from functools import partial
from typing import Any

from tests.chaos.caller import Ask, Callers
from tests.chaos.jobs.crowd import crowd
from tests.chaos.jobs.deliveries import delivery
from tests.chaos.plan import Job
from tests.chaos.site.site import Site
from tests.fixtures.caller import Answer

TENANT, STRANGER = "acme", "globex"
_WORKFLOWS = f"/api/tenants/{TENANT}/workflows"
_OVER = frozenset({"succeeded", "failed", "cancelled"})


class Desk:
    """Asks of one job."""

    def __init__(self, site: Site, callers: Callers, job: Job) -> None:
        self._site, self._callers, self._job = site, callers, job
        self.insist = callers.insist

    def start(self, name: str, given: dict[str, Any], body: str = "a") -> Ask:
        content = {"input": {"job": self._job.number, "body": body, **given}}
        return self._ask(f"start:{name}", f"start-{self._job.number}", body,
                         f"{_WORKFLOWS}/{name}/start", content)  # fmt: skip

    def resolve(self, promise: str, number: int) -> Ask:
        key = f"resolve-{self._job.number}-{number}"
        content = {"value": {"value": key}, "park": True}
        path = f"/api/tenants/{TENANT}/promises/key:{promise}/resolve"
        return self._ask("resolve", key, json.dumps(key), path, content)

    def control(self, action: str, workflow: str, number: int, **content: Any) -> Ask:
        key = f"{action}-{self._job.number}-{number}"
        return self._ask(action, key, "a", f"{_WORKFLOWS}/{workflow}/{action}", content)

    def see(self, workflow: str, tenant: str = TENANT) -> Ask:
        path = f"/api/tenants/{tenant}/workflows/{workflow}?wait=3s"
        return Ask(self._job.number, "see", tenant, workflow, "", path, b"", self._headers(tenant),
                   "GET", keyed=False)  # fmt: skip

    async def end_of(self, workflow: str, dice: random.Random) -> Answer | None:
        """Ask until it is over; None for somebody who gave up."""
        while True:
            answer = await self.insist(self.see(workflow), dice)
            if answer is None or answer.status != 200 or answer.json["status"] in _OVER:
                return answer
            if self._callers.gives_up(self.see(workflow)):
                return None

    def _ask(self, place: str, key: str, body: str, path: str, content: Any) -> Ask:
        return Ask(self._job.number, place, TENANT, key, body, path, json.dumps(content).encode(),
                   self._headers(TENANT))  # fmt: skip

    def _headers(self, tenant: str) -> dict[str, str]:
        return {"authorization": f"Bearer {self._site.keys[tenant]}"}


async def order(site: Site, callers: Callers, job: Job) -> None:
    desk, dice = Desk(site, callers, job), job.dice
    promise = f"pay:{job.number}"
    given = {"promise": promise, "rest": dice.choice((0, 0.05, 0.5))}
    start = desk.start("order", given)
    resolves = [desk.resolve(promise, number) for number in range(dice.randint(0, 3))]
    hook = delivery(site, job, "resolve", {"promise": promise, "value": f"hook-{job.number}"})
    forged = delivery(site, job, "resolve", {"promise": promise, "value": "forged"}, forged=True)
    settling = [*resolves, *([hook] * (not resolves or dice.random() < 0.5)), forged]
    early = [settling.pop(0) for _ in range(dice.randint(0, len(settling)))]
    await crowd(dice, [partial(desk.insist, ask) for ask in early])
    asks = [start] * dice.randint(1, 3) + [desk.start("order", given, "b")] + settling * 2
    answers = await crowd(dice, [partial(desk.insist, ask) for ask in asks])
    started = [a for ask, a in zip(asks, answers, strict=True) if ask.place == start.place]
    workflow = next((a.json["id"] for a in started if a and a.status in {200, 201}), None)
    if workflow is not None:
        await desk.end_of(workflow, dice)
        # Asked again, each is told what it was told; and nobody else is told anything.
        again = [start, *resolves, desk.see(workflow, STRANGER)]
        await crowd(dice, [partial(desk.insist, ask) for ask in again])


async def cancel(site: Site, callers: Callers, job: Job) -> None:
    desk, dice = Desk(site, callers, job), job.dice
    started = await desk.insist(desk.start("hold", {}), dice)
    if started is None:
        return
    workflow = started.json["id"]
    await asyncio.sleep(dice.random() * 0.5)
    asks = [desk.control("cancel", workflow, 1)] * dice.randint(2, 3)
    await crowd(dice, [partial(desk.insist, ask) for ask in asks])
    await desk.end_of(workflow, dice)
    await desk.insist(asks[0], dice)


async def fork(site: Site, callers: Callers, job: Job) -> None:
    desk, dice = Desk(site, callers, job), job.dice
    started = await desk.insist(desk.start("three", {}), dice)
    if started is None:
        return
    workflow = started.json["id"]
    ended = await desk.end_of(workflow, dice)
    if ended is None or ended.json["status"] != "succeeded":
        return
    asks = [desk.control("fork", workflow, 1, from_step=2)] * dice.randint(2, 4)
    answers = await crowd(dice, [partial(desk.insist, ask) for ask in asks])
    forks = {a.json["workflow_id"] for a in answers if a is not None and a.status < 300}
    for each in sorted(forks):
        await desk.end_of(each, dice)
