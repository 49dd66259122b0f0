"""Events whose publisher died half-way: nothing that was kept is lost."""

from typing import Any

import pytest

from oncekey import App, Context
from oncekey.core.work import Publish, Unmatched
from oncekey.durable.embedded.asking import EVENTS, Asking
from oncekey.durable.embedded.events import event_of
from oncekey.durable.values import canonical, fingerprint_of
from tests.conformance.durable.conftest import Workshop, until, waiting

pytestmark = pytest.mark.anyio

TOPIC, DATA = "parcel:sent", b'{"order":"a"}'


def receiving(app: App, **options: Any) -> Any:
    @app.workflow
    async def receive(ctx: Context) -> Any:
        return await ctx.event(TOPIC, where="input.order == 'a'", **options)

    return receive


def asking_of(app: App) -> Asking:
    """The store, asked as a process would that dies in between."""
    return Asking(app.engine._ledger)  # type: ignore[attr-defined]


async def keep(asking: Asking, key: str | None) -> None:
    """What is left of a publisher that died before it looked who waits."""
    number, insert = asking.draw(), None
    if key is not None:
        fingerprint = fingerprint_of(TOPIC, canonical(DATA))
        insert = asking.insert("default", EVENTS, key, number, fingerprint=fingerprint, keep=10**9)
    event = event_of(number, "default", TOPIC, DATA, b"{}", asking.clock.now())
    assert await asking.ask(Publish(event, insert)) is True


async def test_whoever_publishes_again_does_what_the_first_left_undone(workshop: Workshop) -> None:
    app = workshop.app()
    receive = receiving(app)
    async with workshop.open(app):
        handle = await app.start(receive)
        await waiting(app, handle.id)
        await keep(asking_of(app), "evt_1")
        answer = await app.publish(TOPIC, {"order": "a"}, idempotency_key="evt_1")
        assert (answer.key_new, answer.matched) == (False, 1)
        assert await handle.result(timeout=60) == {"order": "a"}
        again = await app.publish(TOPIC, {"order": "a"}, idempotency_key="evt_1")
        assert again == answer


async def test_an_event_nobody_publishes_again_is_matched_all_the_same(workshop: Workshop) -> None:
    app = workshop.app()
    receive = receiving(app)
    async with workshop.open(app):
        handle = await app.start(receive)
        await waiting(app, handle.id)
        await keep(asking_of(app), None)
        assert await handle.result(timeout=60) == {"order": "a"}

        async def is_matched() -> bool:
            left = await asking_of(app).ask(Unmatched(1 << 60))
            return not left

        await until(is_matched)
