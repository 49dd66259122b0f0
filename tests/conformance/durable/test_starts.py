"""Starting by key: one execution per key, whoever asks, and what becomes of the key."""

import asyncio
from typing import Any

import pytest

from oncekey import Context, KeyInvalid, KeyReused, Link, Ref, Scope, State, TerminalError
from oncekey.core.execution import Status
from tests.conformance.durable.conftest import Workshop, until

pytestmark = pytest.mark.anyio


def works(app: Any) -> tuple[Any, Any, list[Any]]:
    done: list[Any] = []

    @app.workflow
    async def work(ctx: Context, given: Any) -> Any:
        await ctx.run("work", done.append, given)
        if given == "fail":
            raise TerminalError("failed")
        return given

    @app.task
    async def task(given: Any) -> Any:
        done.append(given)
        return given

    return work, task, done


@pytest.mark.parametrize("sort", [0, 1])
async def test_one_execution_per_key(workshop: Workshop, sort: int) -> None:
    app = workshop.app()
    work, task, done = works(app)
    target = (work, task)[sort]
    async with workshop.open(app):
        handles = await asyncio.gather(*(app.start(target, {"a": 1}, key="k") for _ in range(40)))
        assert len({handle.id for handle in handles}) == 1
        assert [handle.created for handle in handles].count(True) == 1
        assert await handles[0].result(timeout=20) == {"a": 1}
        late = await app.start(target, {"a": 1.0}, key="k")
        assert not late.created
        assert (await late.execution()).status is Status.SUCCEEDED
        assert await late.result() == {"a": 1}
    assert len(done) == 1


async def test_a_key_with_another_input_or_name_is_refused(workshop: Workshop) -> None:
    app = workshop.app()
    work, task, done = works(app)
    async with workshop.open(app):
        await (await app.start(work, 1, key="k")).result(timeout=20)
        with pytest.raises(KeyReused):
            await app.start(work, 2, key="k")
        with pytest.raises(KeyReused):
            await app.start(task, 1, key="k")
    assert done == [1]


async def test_a_failed_one_keeps_its_key_or_gives_it_back(workshop: Workshop) -> None:
    app = workshop.app()
    work, _, done = works(app)
    async with workshop.open(app):
        kept = await app.start(work, "fail", key="kept")
        freed = await app.start(work, "fail", key="freed", on_failed="free")
        for handle in (kept, freed):
            with pytest.raises(TerminalError):
                await handle.result(timeout=20)
        assert (await app.start(work, "fail", key="kept")).id == kept.id
        again = await app.start(work, "fail", key="freed")
        assert (again.id != freed.id, again.created) == (True, True)
        with pytest.raises(TerminalError):
            await again.result(timeout=20)
    assert len(done) == 3


async def test_the_key_table_leads_both_ways(workshop: Workshop) -> None:
    app = workshop.app()
    work, task, _ = works(app)
    async with workshop.open(app):
        ledger: Any = app.engine._ledger
        for target, kind in ((work, "workflow"), (task, "task")):
            handle = await app.start(target, 1, key=f"of {kind}")
            await handle.result(timeout=20)
            ref = Ref(Scope("t-default:_tenant:service:oncekey", "start"), f"of {kind}")
            assert (await ledger.apeek(ref)).link == Link(kind, handle.id)
            await until(lambda ref=ref: _is_settled(ledger, ref))
            assert (await handle.execution()).key == f"of {kind}"
        made = await app.engine.create_promise("default", "p", key="of promise")
        ref = Ref(Scope("t-default:_tenant:service:oncekey", "promise"), "of promise")
        assert (await ledger.apeek(ref)).link == Link("promise", made.promise.public_id)
        assert (await app.promise("key:of promise")).key == "of promise"


async def _is_settled(ledger: Any, ref: Ref) -> bool:
    """Where a key is not kept beside its execution, it hears of the end a moment later."""
    return (await ledger.apeek(ref)).state is State.SUCCEEDED


@pytest.mark.parametrize("key", ["", "a\nb", "x" * 513])
async def test_a_bad_key_is_refused(workshop: Workshop, key: str) -> None:
    app = workshop.app()
    work, _, done = works(app)
    async with workshop.open(app):
        with pytest.raises(KeyInvalid):
            await app.start(work, 1, key=key)
    assert done == []
