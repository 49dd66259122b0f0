"""Another tenant cannot read, settle, wait for, control, list or detect anything: it is told the
same as of what does not exist."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple

import pytest

from oncekey import App, Context, KeyConflict, KeyReused, NotFound
from oncekey.core.errors import OnceKeyError
from oncekey.core.execution import PromiseKind, PromiseState, execution_number_of
from oncekey.core.work import ListExecutions, ListPromises
from oncekey.durable.address import Address, ById, ByKey, ByName, ByToken
from oncekey.durable.engine import Engine
from tests.conformance.durable.conftest import Workshop, until

pytestmark = pytest.mark.anyio

OURS, THEIRS = "acme", "other"
NOBODYS = "0000000000000001"


class Estate(NamedTuple):
    """What one tenant has."""

    app: App
    workflow: str
    token: str
    alone: str
    alone_token: str

    @property
    def engine(self) -> Engine:
        return self.app.engine

    def addresses(self) -> list[tuple[Address, Address]]:
        """Every way to name one of its promises, beside one that names nothing."""
        return [
            (ById(f"{self.workflow}:told"), ById(f"wf_{NOBODYS}:told")),
            (ByName(self.workflow, "told"), ByName(f"wf_{NOBODYS}", "told")),
            (ByKey("k:told"), ByKey("k:nobody")),
            (ByToken(self.token), ByToken("ct_" + "A" * 43)),
            (ById(self.alone), ById(f"pr_{NOBODYS}:alone")),
            (ByKey("k:alone"), ByKey("k:nobody")),
            (ByToken(self.alone_token), ByToken("ct_" + "B" * 43)),
        ]


@pytest.fixture
async def estate(workshop: Workshop) -> AsyncIterator[Estate]:
    app, tokens = workshop.app(), []

    @app.workflow
    async def flow(ctx: Context, name: str) -> Any:
        token = await ctx.token("told", key="k:told")
        await ctx.run("send", tokens.append, token)
        return [await ctx.promise("told"), name]

    @app.workflow
    async def listens(ctx: Context) -> Any:
        return await ctx.event("topic", where="input.fits")

    async with workshop.open(app):
        handle = await app.start(flow, "ours", key="k:start", tenant=OURS)

        async def has_sent() -> list[str]:
            return tokens

        await until(has_sent)
        made = await app.engine.create_promise(OURS, "alone", key="k:alone", token=True)
        assert made.token is not None
        yield Estate(app, handle.id, tokens[0], made.promise.public_id, made.token)


async def told(ask: Awaitable[Any]) -> tuple[str, str]:
    """What is said to whoever asks."""
    with pytest.raises(OnceKeyError) as raised:
        await ask
    return raised.value.code, str(raised.value)


async def check_same(
    ask: Callable[[Any], Awaitable[Any]], hidden: Any, unknown: Any, *, names: bool = False
) -> None:
    """Both are told the same; `names`: but for the name that was given."""
    first, second = await told(ask(hidden)), await told(ask(unknown))
    if names:
        second = (second[0], second[1].replace(unknown, hidden))
    assert first == second
    assert first[0] == "not-found"


async def untouched(estate: Estate) -> bool:
    states = [await estate.engine.promise(OURS, mine) for mine, _ in estate.addresses()]
    return {each.state for each in states} == {PromiseState.PENDING}


async def test_promises_of_others_are_not_there(estate: Estate) -> None:
    engine = estate.engine
    for mine, unknown in estate.addresses():
        assert (await engine.promise(OURS, mine)).state is PromiseState.PENDING
        await check_same(lambda place: engine.promise(THEIRS, place), mine, unknown)
        await check_same(lambda place: engine.wait_promise(THEIRS, place, 5), mine, unknown)


@pytest.mark.parametrize("state", [PromiseState.RESOLVED, PromiseState.REJECTED])
@pytest.mark.parametrize("request_key", [None, "evt_1"])
async def test_promises_of_others_cannot_be_settled(
    estate: Estate, state: Any, request_key: str | None
) -> None:
    engine = estate.engine
    for mine, unknown in estate.addresses():
        await check_same(
            lambda place: engine.settle(THEIRS, place, state, b'"theirs"', request_key=request_key),
            mine,
            unknown,
        )
    assert await untouched(estate)
    # Nothing was kept under the request key either.
    answer = await engine.settle(OURS, ByKey("k:told"), state, b'"ours"', request_key=request_key)
    assert (answer.already_resolved, answer.key_new) == (False, request_key is not None)


async def test_executions_of_others_are_not_there(estate: Estate) -> None:
    engine, unknown = estate.engine, f"wf_{NOBODYS}"
    for ask in (engine.execution, engine.journal):
        await check_same(lambda n, ask=ask: ask(THEIRS, n), estate.workflow, unknown, names=True)
    await check_same(lambda n: engine.wait(THEIRS, n, 5), estate.workflow, unknown, names=True)


@pytest.mark.parametrize("action", ["cancel", "resume", "fork"])
async def test_executions_of_others_cannot_be_controlled(estate: Estate, action: Any) -> None:
    engine, step = estate.engine, 1 if action == "fork" else None
    await check_same(
        lambda number: engine.control(THEIRS, action, number, "c1", from_step=step),
        estate.workflow,
        f"wf_{NOBODYS}",
        names=True,
    )
    # Our own use of the same request key is not theirs to see, before or after.
    fork = await engine.control(OURS, "fork", estate.workflow, "c1", from_step=1)
    assert not fork.replayed
    await check_same(
        lambda number: engine.control(THEIRS, action, number, "c1", from_step=step),
        estate.workflow,
        f"wf_{NOBODYS}",
        names=True,
    )
    assert await untouched(estate)


async def test_nothing_of_others_is_listed(estate: Estate) -> None:
    engine = estate.engine
    await estate.app.publish("topic", {"fits": True}, idempotency_key="e1", tenant=OURS)
    place = execution_number_of(estate.workflow)
    assert place is not None
    assert await engine.executions(ListExecutions(OURS))
    assert await engine.executions(ListExecutions(THEIRS)) == []
    assert await engine.promises(ListPromises(OURS))
    assert await engine.promises(ListPromises(THEIRS)) == []
    assert await engine.promises(ListPromises(THEIRS, execution=place[1])) == []
    assert await engine.events(OURS)
    assert await engine.events(THEIRS) == []
    assert await engine.events(THEIRS, "topic") == []


async def test_keys_of_two_tenants_are_independent(estate: Estate) -> None:
    app, engine = estate.app, estate.engine
    theirs = await app.start("flow", "theirs", key="k:start", tenant=THEIRS)
    assert theirs.created
    assert theirs.id != estate.workflow

    async def is_made() -> bool:
        with suppress(NotFound):
            return (await app.promise("key:k:told", tenant=THEIRS)).key == "k:told"
        return False

    await until(is_made)
    await app.resolve("key:k:told", 1, request_key="evt_1", tenant=THEIRS)
    answer = await app.resolve("key:k:told", 2, request_key="evt_1", tenant=OURS)
    assert (answer.already_resolved, answer.key_new) == (False, True)
    ours = await app.handle(estate.workflow, tenant=OURS)
    assert await ours.result(timeout=60) == [2, "ours"]
    assert await theirs.result(timeout=60) == [1, "theirs"]
    # Within each tenant a key is what it was.
    assert not (await app.start("flow", "theirs", key="k:start", tenant=THEIRS)).created
    with pytest.raises(KeyReused):
        await app.start("flow", "ours", key="k:start", tenant=THEIRS)
    made = await engine.create_promise(THEIRS, "alone", key="k:alone")
    with pytest.raises(KeyConflict, match=made.promise.public_id):
        await engine.create_promise(THEIRS, "alone", key="k:alone")


async def test_parked_resolutions_are_their_tenants(estate: Estate) -> None:
    app, engine = estate.app, estate.engine
    await app.resolve("key:k:new", "theirs", request_key="evt_9", park=True, tenant=THEIRS)
    ours = await engine.create_promise(OURS, "new", key="k:new")
    assert ours.promise.state is PromiseState.PENDING
    again = await app.resolve("key:k:new", "ours", request_key="evt_9", park=True, tenant=OURS)
    assert again.key_new
    theirs = await engine.create_promise(THEIRS, "new", key="k:new")
    assert theirs.promise.body == b'"theirs"'
    assert (await engine.promise(OURS, ByKey("k:new"))).body == b'"ours"'


async def test_events_are_heard_by_their_tenant_alone(estate: Estate) -> None:
    app, engine = estate.app, estate.engine
    handles = {each: await app.start("listens", tenant=each) for each in (OURS, THEIRS)}
    for tenant in handles:

        async def listens(tenant: str = tenant) -> bool:
            query = ListPromises(tenant, PromiseState.PENDING, PromiseKind.EVENT)
            return bool(await engine.promises(query))

        await until(listens)
    for tenant in (THEIRS, OURS):
        data = {"fits": True, "of": tenant}
        answer = await app.publish("topic", data, idempotency_key="evt", tenant=tenant)
        assert (answer.matched, answer.key_new) == (1, True)
        assert (await handles[tenant].result(timeout=60))["of"] == tenant
