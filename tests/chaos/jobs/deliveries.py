"""Webhooks: signed deliveries that come several times, and forged ones that look like them."""

import json
from functools import partial
from typing import Any

from oncekey.testing import signed_delivery
from tests.chaos.caller import Ask, Callers
from tests.chaos.jobs.crowd import crowd
from tests.chaos.plan import Job
from tests.chaos.site.site import Site

FORGED = "forged"


async def forward(site: Site, callers: Callers, job: Job) -> None:
    """To the bank, once."""
    content = {"job": job.number, "v": "a", "slow": job.dice.choice((0, 0.05)), "fails": 0}
    given = delivery(site, job, "forward", content)
    false = delivery(site, job, "forward", {**content, "v": FORGED}, forged=True)
    asks = [given] * job.dice.randint(2, 3) + [false]
    await crowd(job.dice, [partial(callers.insist, ask) for ask in asks])
    await callers.insist(given, job.dice)


def delivery(site: Site, job: Job, hook: str, content: Any, *, forged: bool = False) -> Ask:
    """What the provider sends, or somebody who does not know its secret."""
    made = site.hooks[hook]
    name = f"{hook}-{job.number}{'-forged' if forged else ''}"
    secret = "not the secret" if forged else made["secret"]
    lines = {"x-github-delivery": name, "x-github-event": "push"}
    signed = signed_delivery("github", content, secret, headers=lines)
    kept = {k: v for k, v in signed.headers.items() if k.startswith("x-")}
    place = "/hooks/forwarded" if hook == "forward" else "hook"
    body = FORGED if forged else json.dumps(content.get("value", content.get("v")))
    return Ask(
        job.number, place, "acme/shop/webhook-ingest", f"github-{name}", body, made["path"],
        signed.body, kept, keyed=False,
    )  # fmt: skip
