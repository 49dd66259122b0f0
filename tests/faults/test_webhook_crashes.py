"""A process is killed at every point of a delivery; the provider delivers again, to another one."""

import asyncio
from collections import Counter
from typing import Any

import pytest

import oncekey
from oncekey.core.execution import PromiseState
from oncekey.durable.address import ByKey
from tests.fixtures.doomed_post import FOLLOWING, SCENES, Address, Scene, deliver_and_die, office
from tests.fixtures.post import TENANT, Post, Webhook, post_on
from tests.fixtures.processes import Start

AT_ONCE = 6
# On PostgreSQL a death is seen by silence.
LEASE: dict[str, Any] = {"lease": 1.5, "heartbeat": 0.4}


async def _webhooks(url: str) -> dict[tuple[str, str], Address]:
    ledger = oncekey.open(url)
    made = {}
    async with post_on(ledger) as post:
        for provider in ("stripe", "github"):
            for then in FOLLOWING:
                webhook = await post.webhook(provider, then)
                made[provider, then] = Address(webhook.source.id, webhook.secret)
        for scene in SCENES:
            if scene.then.startswith("resolve"):
                await post.app.engine.create_promise(TENANT, "noted", key=scene.name)
    ledger.close()
    return made


def _kill(start: Start, url: str, addresses: dict[tuple[str, str], Address]) -> None:
    for at in range(0, len(SCENES), AT_ONCE):
        doomed = [
            (scene, start(deliver_and_die, url, addresses[scene[:2]], scene, LEASE))
            for scene in SCENES[at : at + AT_ONCE]
        ]
        for scene, process in doomed:
            with pytest.raises(EOFError):
                pytest.fail(f"{scene} ends: {process.hear()}")
            assert process.join() == -9, scene


async def _redelivered(webhook: Webhook, scene: Scene) -> tuple[int, int]:
    """Until it is done, and then once more."""
    first = await webhook.insist(scene.body, **scene.headers)
    again = await webhook.deliver(scene.body, **scene.headers)
    return first.status, again.status


async def _effects(post: Post) -> Counter[str]:
    found: Counter[str] = Counter()
    found.update(each.input.decode() for each in await _all_started(post))
    found.update(each.data.decode() for each in await post.app.engine.events(TENANT, limit=500))
    for scene in SCENES:
        if scene.then.startswith("resolve"):
            promise = await post.app.engine.promise(TENANT, ByKey(scene.name))
            if promise.state is PromiseState.RESOLVED:
                found[(promise.body or b"").decode()] += 1
    return found


async def _all_started(post: Post) -> list[Any]:
    found = await post.started()
    assert len(found) < 100
    return found


def test_whatever_dies_with_a_delivery_it_has_one_effect(
    start: Start, url: str, subtests: pytest.Subtests
) -> None:
    addresses = asyncio.run(_webhooks(url))
    _kill(start, url, addresses)

    async def deliver_again() -> tuple[list[tuple[int, int]], Counter[str]]:
        ledger = oncekey.open(url, **LEASE)
        async with post_on(ledger, office()) as post:
            webhooks = {place: await post.known(*each) for place, each in addresses.items()}
            statuses = await asyncio.gather(
                *(_redelivered(webhooks[scene[:2]], scene) for scene in SCENES)
            )
            effects = await _effects(post)
        ledger.close()
        return statuses, effects

    statuses, effects = asyncio.run(deliver_again())
    for scene, heard in zip(SCENES, statuses, strict=True):
        with subtests.test(scene=scene.name):
            assert heard == (200, 200)
            assert effects[f'{{"id": "{scene.name}"}}'] == 1
    assert sum(effects.values()) == len(SCENES)
