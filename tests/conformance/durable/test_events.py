"""Events: matched by key and condition, once per key, for several waiters and for late ones."""

import asyncio
from typing import Any

import pytest

from oncekey import Context, KeyReused, PayloadTooLarge, PromiseTimedOut, TerminalError
from tests.conformance.durable.conftest import Workshop, promises_of, until, waiting

pytestmark = pytest.mark.anyio


def shipping(app: Any, **options: Any) -> Any:
    @app.workflow
    async def ship(ctx: Context, order: str) -> Any:
        where = f"input.order_id == '{order}'"
        return await ctx.event("shipment:created", where=where, **options)

    return ship


async def test_an_event_wakes_those_it_fits(workshop: Workshop) -> None:
    app = workshop.app()
    ship = shipping(app)
    async with workshop.open(app):
        handles = [await app.start(ship, order) for order in ("a", "a", "b")]
        for handle in handles:
            await waiting(app, handle.id)
        answer = await app.publish("shipment:created", {"order_id": "a", "box": 1})
        assert answer.matched == 2
        assert answer.event_id.startswith("ev_")
        for handle in handles[:2]:
            assert await handle.result(timeout=20) == {"order_id": "a", "box": 1}
        other = await app.publish("shipment:lost", {"order_id": "b"})
        assert other.matched == 0
        await waiting(app, handles[2].id)


async def test_an_event_with_a_key_happens_once(workshop: Workshop) -> None:
    app = workshop.app()
    ship = shipping(app)
    async with workshop.open(app):
        handle = await app.start(ship, "a")
        await waiting(app, handle.id)
        first = await app.publish("shipment:created", {"order_id": "a"}, idempotency_key="e1")
        again = await app.publish("shipment:created", {"order_id": "a"}, idempotency_key="e1")
        assert (first.key_used, first.key_new, first.matched) == (True, True, 1)
        assert again == first._replace(key_new=False)
        with pytest.raises(KeyReused):
            await app.publish("shipment:created", {"order_id": "b"}, idempotency_key="e1")
        await handle.result(timeout=20)
        later = await app.start(ship, "a")
        await waiting(app, later.id)
        await app.publish("shipment:created", {"order_id": "a"}, idempotency_key="e1")
        await waiting(app, later.id)


async def test_conditions_see_data_key_and_headers(workshop: Workshop) -> None:
    app = workshop.app()

    @app.workflow
    async def wait(ctx: Context, where: str) -> int:
        return (await ctx.event("e", where=where))["n"]

    wheres = ["input.n > 1 && input.tags.exists(t, t == 'x')", "key == 'e'", "headers['h'] == 'v'"]
    async with workshop.open(app):
        handles = [await app.start(wait, where) for where in wheres]
        for handle in handles:
            await waiting(app, handle.id)
        data = {"n": 2, "tags": ["x"]}
        answer = await app.publish("e", data, headers={"h": "v"})
        assert answer.matched == 3
        assert [await handle.result(timeout=20) for handle in handles] == [2, 2, 2]


async def test_trouble_with_a_condition_is_told_on_the_wait(workshop: Workshop) -> None:
    app = workshop.app()

    @app.workflow
    async def wait(ctx: Context) -> Any:
        return await ctx.event("e", where="input.deep.number > 1")

    async with workshop.open(app):
        handle = await app.start(wait)
        await waiting(app, handle.id)
        assert (await app.publish("e", {"other": 1})).matched == 0
        (promise,) = await promises_of(app, handle.id)
        assert promise.trouble
        assert "deep" in promise.trouble
        assert (await app.publish("e", {"deep": {"number": 2}})).matched == 1
        assert await handle.result(timeout=20) == {"deep": {"number": 2}}


@pytest.mark.parametrize("where", ["input.", "nothing.x == 1", "1 + 1", "x" * 5000])
async def test_a_bad_condition_fails_where_it_is_written(workshop: Workshop, where: str) -> None:
    app = workshop.app()

    @app.workflow
    async def wait(ctx: Context) -> None:
        await ctx.event("e", where=where)

    async with workshop.open(app):
        handle = await app.start(wait)
        with pytest.raises(TerminalError) as raised:
            await handle.result(timeout=20)
        assert raised.value.code == "condition-invalid"
        assert not await promises_of(app, handle.id)


async def test_an_event_shortly_before_the_wait_counts_with_lookback(workshop: Workshop) -> None:
    app = workshop.app()

    @app.workflow
    async def late(ctx: Context, seconds: float) -> Any:
        lookback, timeout = seconds or None, seconds or 0.3
        where = "input.order_id == 'a'"
        return await ctx.event("e", where=where, lookback=lookback, timeout=timeout)

    async with workshop.open(app):
        await app.publish("e", {"order_id": "b"})
        await app.publish("e", {"order_id": "a", "n": 1})
        await app.publish("e", {"order_id": "a", "n": 2})
        handle = await app.start(late, 60.0)
        assert await handle.result(timeout=20) == {"order_id": "a", "n": 1}
        handle = await app.start(late, 0.0)
        with pytest.raises(PromiseTimedOut):
            await handle.result(timeout=20)


async def test_many_wait_for_one_event(workshop: Workshop) -> None:
    app = workshop.app()

    @app.workflow
    async def wait(ctx: Context, number: int) -> int:
        await ctx.event("go")
        return number

    async with workshop.open(app):
        # More than one page of them.
        count = 210 if workshop.url.startswith("restate") else 450
        handles = []
        for at in range(0, count, 10):
            handles += await asyncio.gather(*(app.start(wait, at + each) for each in range(10)))
        for handle in handles:
            await waiting(app, handle.id)
        assert (await app.publish("go")).matched == count
        results = await asyncio.gather(*(handle.result(timeout=30) for handle in handles))
        assert results == list(range(count))


async def test_an_event_too_large_is_refused(workshop: Workshop) -> None:
    app = workshop.app()
    async with workshop.open(app):
        with pytest.raises(PayloadTooLarge, match="262144 are allowed"):
            await app.publish("e", "x" * (300 << 10))
        assert await app.engine.events("default") == []


async def test_events_are_listed(workshop: Workshop) -> None:
    app = workshop.app()
    async with workshop.open(app):
        for number in range(3):
            await app.publish("e", number)

        async def look() -> Any:
            found = await app.engine.events("default", "e")
            data = [each.data for each in found if each.matched]
            return data if len(data) == 3 else None

        assert await until(look) == [b"2", b"1", b"0"]
        assert [each.data for each in await app.engine.events("default", limit=1)] == [b"2"]
