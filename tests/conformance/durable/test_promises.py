"""Promises: every row of creating one and of resolving one, by whatever names it."""

import asyncio
from typing import Any

import pytest

from oncekey import (
    App,
    Context,
    InvalidInput,
    KeyConflict,
    KeyReused,
    NotFound,
    PromiseOver,
    PromiseRejected,
    PromiseTimedOut,
)
from oncekey.core.execution import PromiseState
from oncekey.durable.address import ByName, ByToken
from oncekey.durable.app import Handle
from tests.conformance.durable.conftest import Workshop, promises_of, until, waiting

pytestmark = pytest.mark.anyio


def paying(app: App, **options: Any) -> Any:
    @app.workflow
    async def pay(ctx: Context, charge: str) -> Any:
        return await ctx.promise("payment", key=f"stripe:{charge}", **options)

    return pay


async def test_a_promise_is_resolved_by_its_key(workshop: Workshop) -> None:
    app = workshop.app()
    pay = paying(app)
    async with workshop.open(app):
        handle = await app.start(pay, "ch_1")
        await waiting(app, handle.id)
        answer = await app.resolve("key:stripe:ch_1", {"amount": 5}, request_key="evt_1")
        assert answer.promise is not None
        assert answer.promise.public_id == f"{handle.id}:payment"
        assert (answer.already_resolved, answer.key_used, answer.key_new) == (False, True, True)
        assert await handle.result(timeout=20) == {"amount": 5}


async def test_the_same_request_key_gets_the_first_answer(workshop: Workshop) -> None:
    app = workshop.app()
    pay = paying(app)
    async with workshop.open(app):
        handle = await app.start(pay, "ch_1")
        await waiting(app, handle.id)
        first = await app.resolve("key:stripe:ch_1", 1, request_key="evt_1")
        again = await app.resolve("key:stripe:ch_1", 1, request_key="evt_1")
        assert again == first._replace(key_new=False, promise=again.promise)
        other = await app.resolve("key:stripe:ch_1", 2, request_key="evt_2")
        assert (other.already_resolved, other.key_new) == (True, True)
        assert other.promise is not None
        assert (other.promise.body, other.promise.settled_by) == (b"1", "evt_1")
        other = await app.resolve("key:stripe:ch_1", 2, request_key="evt_2")
        assert (other.already_resolved, other.key_new) == (True, False)
        without = await app.resolve("key:stripe:ch_1", 3)
        assert (without.already_resolved, without.key_used, without.key_new) == (True, False, False)
        assert await handle.result(timeout=20) == 1


async def test_a_request_key_is_for_one_promise(workshop: Workshop) -> None:
    app = workshop.app()
    pay = paying(app)
    async with workshop.open(app):
        handles = [await app.start(pay, charge) for charge in ("a", "b")]
        for handle in handles:
            await waiting(app, handle.id)
        await app.resolve("key:stripe:a", 1, request_key="evt")
        with pytest.raises(KeyReused, match="another promise"):
            await app.resolve("key:stripe:b", 1, request_key="evt")
        assert (await app.promise("key:stripe:b")).state is PromiseState.PENDING


@pytest.mark.parametrize("way", ["id", "name", "token"])
async def test_other_ways_to_name_a_promise(workshop: Workshop, way: str) -> None:
    app = workshop.app()
    tokens: list[str] = []

    @app.workflow
    async def approve(ctx: Context) -> str:
        token = await ctx.token("approval")
        await ctx.run("send", tokens.append, token)
        return await ctx.promise("approval", type=str)

    async with workshop.open(app):
        handle = await app.start(approve)
        await waiting(app, handle.id)
        (token,) = tokens
        if way == "id":
            await app.resolve(f"id:{handle.id}:approval", "yes")
        elif way == "token":
            assert token.startswith("ct_")
            await app.resolve(token, "yes")
        else:
            address = ByName(handle.id, "approval")
            await app.engine.settle("default", address, PromiseState.RESOLVED, b'"yes"')
        assert await handle.result(timeout=20) == "yes"


async def test_a_token_survives_a_restart_and_a_retry_of_its_step(workshop: Workshop) -> None:
    app = workshop.app()
    tokens: list[str] = []
    broken = [True]

    @app.workflow
    async def approve(ctx: Context) -> str:
        token = await ctx.token("approval")

        def send() -> None:
            tokens.append(token)
            if broken:
                raise OSError("the mail did not go out, or did it?")

        await ctx.run("send", send)
        return await ctx.promise("approval", type=str)

    async with workshop.open(app):
        handle = await app.start(approve)
        await until(lambda: _sent(tokens, 1))
        await waiting(app, handle.id)
    broken.clear()
    async with workshop.open(app):
        await until(lambda: _sent(tokens, 2))
        # The token of the attempt that failed was out in the world: it is still good.
        await app.engine.settle("default", ByToken(tokens[0]), PromiseState.RESOLVED, b'"yes"')
        assert await (await app.handle(handle.id)).result(timeout=20) == "yes"
        again = await app.resolve(tokens[-1], "no")
        assert again.already_resolved


async def _sent(tokens: list[str], count: int) -> bool:
    return len(tokens) >= count


async def test_two_at_once_have_one_winner(workshop: Workshop) -> None:
    app = workshop.app()
    pay = paying(app)
    async with workshop.open(app):
        handle = await app.start(pay, "ch")
        await waiting(app, handle.id)
        answers = await asyncio.gather(
            *(app.resolve("key:stripe:ch", n, request_key=f"evt_{n}") for n in range(50))
        )
        winners = [n for n, answer in enumerate(answers) if not answer.already_resolved]
        assert len(winners) == 1
        assert {a.promise.settled_by for a in answers if a.promise} == {f"evt_{winners[0]}"}
        assert await handle.result(timeout=20) == winners[0]


async def test_an_early_resolution_is_parked_until_its_promise_comes(workshop: Workshop) -> None:
    app = workshop.app()
    pay = paying(app)
    async with workshop.open(app):
        with pytest.raises(NotFound):
            await app.resolve("key:stripe:ch", 1, request_key="evt_0")
        parked = await app.resolve("key:stripe:ch", 1, request_key="evt_1", park=True)
        assert parked.promise is None
        assert parked.parked_until is not None
        again = await app.resolve("key:stripe:ch", 1, request_key="evt_1", park=True)
        assert (again.key_new, again.promise) == (False, None)
        await app.resolve("key:stripe:ch", 2, request_key="evt_2", park=True)
        handle = await app.start(pay, "ch")
        assert await handle.result(timeout=20) == 1
        late = await app.resolve("key:stripe:ch", 1, request_key="evt_1", park=True)
        assert (late.already_resolved, late.key_new) == (False, False)


async def test_what_was_parked_too_long_is_gone(workshop: Workshop) -> None:
    app = workshop.app()
    pay = paying(app)
    async with workshop.open(app):
        await app.resolve("key:stripe:ch", "old", park=True, park_ttl=0.001)
        await asyncio.sleep(0.01)
        handle = await app.start(pay, "ch")
        await waiting(app, handle.id)
        await app.resolve("key:stripe:ch", "new")
        assert await handle.result(timeout=20) == "new"


async def test_a_rejection_is_raised_in_the_workflow(workshop: Workshop) -> None:
    app = workshop.app()

    @app.workflow
    async def ask(ctx: Context) -> Any:
        try:
            await ctx.promise("answer", key="ask")
        except PromiseRejected as error:
            await ctx.sleep(0.001)
            return [str(error), error.reason]

    async with workshop.open(app):
        handle = await app.start(ask)
        await waiting(app, handle.id)
        await app.reject("key:ask", {"message": "not today", "code": 7}, request_key="r")
        assert await handle.result(timeout=20) == ["not today", {"message": "not today", "code": 7}]
        assert (await app.promise("key:ask")).state is PromiseState.REJECTED
        assert (await app.resolve("key:ask", 1)).already_resolved


async def test_a_promise_that_is_not_kept_in_time(workshop: Workshop) -> None:
    app = workshop.app()
    pay = paying(app, timeout=0.02)
    async with workshop.open(app):
        handle = await app.start(pay, "ch")
        with pytest.raises(PromiseTimedOut):
            await handle.result(timeout=20)
        with pytest.raises(PromiseOver) as raised:
            await app.resolve("key:stripe:ch", 1, request_key="late")
        assert raised.value.state == "timed_out"
        # What will never be settled does not keep its key.
        assert (await app.engine.create_promise("default", "again", key="stripe:ch")).promise


async def test_a_key_belongs_to_one_promise_at_a_time(workshop: Workshop) -> None:
    app = workshop.app()
    pay = paying(app)
    async with workshop.open(app):
        handles = await asyncio.gather(*(app.start(pay, "ch") for _ in range(8)))

        async def waiting_one() -> Handle | None:
            left = [each for each in handles if not (await each.execution()).status.is_over]
            return left[0] if len(left) == 1 else None

        winner = await until(waiting_one)
        for handle in handles:
            if handle is not winner:
                with pytest.raises(KeyConflict) as raised:
                    await handle.result(timeout=20)
                assert raised.value.existing_promise_id == f"{winner.id}:payment"
        with pytest.raises(KeyConflict, match=f"{winner.id}:payment"):
            await app.engine.create_promise("default", "p", key="stripe:ch")
        await app.resolve("key:stripe:ch", 1)
        assert await winner.result(timeout=20) == 1


async def test_an_expired_key_can_be_used_again(workshop: Workshop) -> None:
    app = workshop.app()
    async with workshop.open(app):
        engine = app.engine
        old = (await engine.create_promise("default", "old", key="k", key_ttl=0.02)).promise
        await asyncio.sleep(0.03)
        with pytest.raises(PromiseOver) as raised:
            await app.resolve("key:k", 1, request_key="r1")
        assert raised.value.state == "expired"
        with pytest.raises(NotFound):
            await app.promise("key:k")
        new = (await engine.create_promise("default", "new", key="k")).promise
        assert (await app.resolve("key:k", 2)).promise == (await app.promise("key:k"))
        assert (await app.promise(f"id:{new.public_id}")).body == b"2"
        # The one whose key has gone can still be settled by its id.
        assert not (await app.resolve(f"id:{old.public_id}", 1)).already_resolved


async def test_promises_without_keys_are_not_in_each_others_way(workshop: Workshop) -> None:
    app = workshop.app()

    @app.workflow
    async def wait(ctx: Context) -> int:
        return await ctx.promise("same", type=int)

    async with workshop.open(app):
        handles = [await app.start(wait) for _ in range(5)]
        for number, handle in enumerate(handles):
            await waiting(app, handle.id)
            await app.resolve(f"id:{handle.id}:same", number)
        assert [await handle.result(timeout=20) for handle in handles] == list(range(5))


async def test_a_standalone_promise_is_waited_for(workshop: Workshop) -> None:
    app = workshop.app()
    async with workshop.open(app):
        made = await app.engine.create_promise("default", "report", key="r", token=True)
        assert made.token is not None
        assert made.promise.public_id.startswith("pr_")
        waiter = asyncio.ensure_future(app.promise("key:r", wait=20))
        for _ in range(3):
            await asyncio.sleep(0)
        assert (await app.promise("key:r", wait=0.001)).state is PromiseState.PENDING
        await app.resolve(made.token, {"rows": 3})
        assert (await waiter).body == b'{"rows":3}'


async def test_a_name_is_used_once_in_a_workflow(workshop: Workshop) -> None:
    app = workshop.app()

    @app.workflow
    async def twice(ctx: Context) -> None:
        await ctx.promise("same")
        await ctx.promise("same")

    async with workshop.open(app):
        handle = await app.start(twice)
        await waiting(app, handle.id)
        await app.resolve(f"id:{handle.id}:same")
        with pytest.raises(Exception, match="used twice in one workflow"):
            await handle.result(timeout=20)
        assert len(await promises_of(app, handle.id)) == 1


@pytest.mark.parametrize("text", ["", "wf_1", "id:", "key:", "kay:x", "ct", "token:ct_1"])
async def test_what_names_no_promise_is_refused(workshop: Workshop, text: str) -> None:
    app = workshop.app()
    async with workshop.open(app):
        with pytest.raises(InvalidInput, match="write id:…, key:… or a token"):
            await app.resolve(text)


@pytest.mark.parametrize(
    "text", ["id:nonsense", "id:wf_0000000000000001:x", "id:pr_1:x", "key:none", "ct_" + "A" * 43]
)
async def test_what_is_not_there_is_not_found(workshop: Workshop, text: str) -> None:
    app = workshop.app()
    async with workshop.open(app):
        with pytest.raises(NotFound, match="there is no such promise"):
            await app.resolve(text)
        with pytest.raises(NotFound, match="there is no such promise"):
            await app.promise(text)
