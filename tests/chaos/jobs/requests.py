"""Requests with a key: the same one from several callers, another body under the same key, and the
same key of somebody else."""

import json
import random
from functools import partial

import msgspec

from tests.chaos.caller import Ask, Callers
from tests.chaos.jobs.crowd import crowd
from tests.chaos.plan import Job
from tests.chaos.site.site import Site

APP = ("/app/rerun", "/app/attach", "/app/refuse", "/app/recover", "/app/within")
BANK = ("/bank/rerun", "/bank/refuse")
OWNERS = ("acme/shop/anna", "acme/shop/ben", "acme/mill/anna", "globex/shop/anna")


async def request(site: Site, callers: Callers, job: Job) -> None:
    dice = job.dice
    app = APP if site.database.has_transactions else APP[:-1]
    place = dice.choice(job.places or (*app, *BANK))
    owners = dice.sample(OWNERS, dice.choice((1, 1, 2))) if place in BANK else [""]
    asks = [_ask(site, job, place, who, "a") for who in owners]
    rival = _ask(site, job, place, owners[0], "b")
    asked = [ask for ask in asks for _ in range(dice.randint(1, 3))]
    if dice.random() < 0.3:
        asked.append(rival)
    await crowd(dice, [partial(callers.insist, ask) for ask in asked])
    # Whoever comes later gets what the others got.
    await crowd(dice, [partial(callers.insist, ask) for ask in (*asks, rival)])


def _ask(site: Site, job: Job, place: str, who: str, body: str) -> Ask:
    dice = random.Random(job.number)
    content = {
        "job": job.number,
        "v": body,
        # Some take so long that they are still at it when others have taken over.
        "slow": dice.choices((0, 0.01, 0.05, 0.2, 1.5), (4, 4, 4, 4, 2))[0],
        "fails": dice.choice((0, 0, 0, 0.4)),
    }
    headers = {"authorization": f"Bearer {site.token(who)}"} if who else {}
    ask = Ask(job.number, place, who, f"j{job.number}", body, place, json.dumps(content).encode())
    return msgspec.structs.replace(ask, headers=headers)
