"""An activity of Temporal ends with the promise it waits for: once, whoever dies and whoever is
asked twice."""

import asyncio
import signal
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError

import oncekey
from oncekey import App, InvalidInput, Ledger
from oncekey.temporal import Activities
from tests.fixtures.processes import Process
from tests.fixtures.temporal_shop import Shop, resolve_and_die, until

pytestmark = pytest.mark.anyio

SCHEDULED = PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgres", marks=pytest.mark.postgres),
        pytest.param("restate", marks=pytest.mark.restate),
    ]
)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/oncekey.db"
    found: str = request.getfixturevalue(f"{request.param}_url")
    return found


@pytest.fixture
def key() -> str:
    return f"stripe:{uuid.uuid4()}"


@pytest.fixture
def kept(url: str) -> Iterator[Ledger]:
    ledger = oncekey.open(url)
    yield ledger
    ledger.close()


@pytest.fixture
async def shop(kept: Ledger, temporal: str) -> AsyncIterator[Shop]:
    shop = Shop(await Client.connect(temporal), App())
    async with shop.app.open(kept), shop.working():
        yield shop


def failure_of(error: WorkflowFailureError) -> ApplicationError:
    assert isinstance(error.cause, ActivityError)
    assert isinstance(error.cause.cause, ApplicationError)
    return error.cause.cause


@pytest.mark.parametrize("way", ["by_ids", "by_token"])
async def test_it_is_completed_with_the_value(shop: Shop, key: str, way: str) -> None:
    order = await shop.order(way, key)
    owner = await shop.waiting(key)
    await shop.app.resolve(f"key:{key}", {"cents": 499}, request_key="evt_1")

    assert await order.result() == {"cents": 499}
    assert await (await shop.app.handle(owner)).result(30) == "done"
    assert await shop.events(order, "ACTIVITY_TASK_COMPLETED") == 1


@pytest.mark.parametrize("way", ["by_ids", "by_token"])
async def test_a_resolution_may_come_first(shop: Shop, key: str, way: str) -> None:
    await shop.app.resolve(f"key:{key}", "early", request_key="evt_1", park=True)

    assert await (await shop.order(way, key)).result() == "early"


@pytest.mark.parametrize("way", ["by_ids", "by_token"])
async def test_a_rejection_fails_it_for_good(shop: Shop, key: str, way: str) -> None:
    order = await shop.order(way, key)
    await shop.waiting(key)
    reason = {"type": "CardDeclined", "message": "card declined", "code": "51"}
    await shop.app.reject(f"key:{key}", reason, request_key="evt_1")

    with pytest.raises(WorkflowFailureError) as raised:
        await order.result()
    failure = failure_of(raised.value)
    assert (failure.type, failure.message) == ("CardDeclined", "card declined")
    assert list(failure.details) == [reason]
    assert failure.non_retryable


async def test_a_rejection_without_a_type_has_its_own(shop: Shop, key: str) -> None:
    await shop.app.reject(f"key:{key}", "no", park=True)

    with pytest.raises(WorkflowFailureError) as raised:
        await (await shop.order("by_ids", key)).result()
    assert (failure_of(raised.value).type, str(raised.value.cause.cause)) == (
        "PromiseRejected",
        "PromiseRejected: no",
    )


async def test_it_may_be_tried_again_with_another_key(shop: Shop, key: str) -> None:
    order = await shop.order("again", key)
    await shop.app.reject(f"key:{key}-1", "no", park=True)
    await shop.app.resolve(f"key:{key}-2", "yes", park=True)

    assert await order.result() == "yes"


async def test_it_fails_when_its_promise_times_out(shop: Shop, key: str) -> None:
    # It was asked for no longer than that; Temporal would give it a minute.
    order = await shop.order("by_ids", key)
    await shop.waiting(key)
    late = await shop.activities.register(
        f"{key}-late", workflow_id=order.id, activity_id="1", timeout=0.01
    )

    with pytest.raises(WorkflowFailureError) as raised:
        await order.result()
    assert failure_of(raised.value).type == "PromiseTimedOut"
    assert await late.result(30) == "done"


async def test_two_resolutions_at_once_complete_it_once(shop: Shop, key: str) -> None:
    order = await shop.order("by_ids", key)
    await shop.waiting(key)
    first, second = await asyncio.gather(
        *(shop.app.resolve(f"key:{key}", each, request_key=f"evt_{each}") for each in (1, 2))
    )

    assert {first.already_resolved, second.already_resolved} == {True, False}
    assert await order.result() == (2 if first.already_resolved else 1)
    assert await shop.events(order, "ACTIVITY_TASK_COMPLETED") == 1


async def test_a_second_attempt_waits_for_the_same_promise(shop: Shop, key: str) -> None:
    order = await shop.order("twice", key)
    owner = await shop.waiting(key)

    async def second() -> bool:
        return shop.attempts == [1, 2]

    await until(second)
    assert await shop.waiting(key) == owner
    await shop.app.resolve(f"key:{key}", "paid", request_key="evt_1")
    assert await order.result() == "paid"


async def test_what_is_settled_between_two_attempts_is_not_lost(shop: Shop, key: str) -> None:
    order = await shop.order("twice", key, rest=2)
    await shop.waiting(key)

    async def rests() -> bool:
        (pending,) = (await order.describe()).raw_description.pending_activities
        return pending.attempt == 2 and pending.state == SCHEDULED

    await until(rests)
    assert await shop.activities.look() == 1
    await shop.app.resolve(f"key:{key}", "paid", request_key="evt_1")
    assert await order.result() == "paid"


async def test_it_waits_no_longer_than_all_attempts_may_take(shop: Shop, key: str) -> None:
    await shop.order("by_ids", key, whole=40)
    await shop.waiting(key)

    promise = await shop.app.promise(f"key:{key}")
    assert promise.due_at is not None
    assert promise.due_at - promise.created_at <= 40_000


async def test_an_activity_waits_for_a_key_once(shop: Shop, key: str) -> None:
    await shop.app.resolve(f"key:{key}", "paid", park=True)

    with pytest.raises(WorkflowFailureError) as raised:
        await (await shop.order("by_ids", key, id="payment", times=2)).result()
    assert failure_of(raised.value).type == "AlreadyEnded"


async def test_a_workflow_may_ask_again_for_what_it_got(shop: Shop, key: str) -> None:
    await shop.app.resolve(f"key:{key}", "paid", park=True)

    assert await (await shop.order("by_ids", key, times=2)).result() == "paid"


async def test_a_local_activity_is_refused(shop: Shop, key: str) -> None:
    with pytest.raises(WorkflowFailureError) as raised:
        await (await shop.order("local", key)).result()
    assert isinstance(raised.value.cause, ApplicationError)
    assert "call it with execute_activity" in raised.value.cause.message


async def test_a_key_of_somebody_else_fails_it_until_it_is_free(shop: Shop, key: str) -> None:
    taken = await shop.app.engine.create_promise("default", "theirs", key=key)
    order = await shop.order("by_ids", key)

    async def tried() -> bool:
        return len(shop.attempts) > 2

    await until(tried)
    description = await order.describe()
    (pending,) = description.raw_description.pending_activities
    failure = pending.last_failure
    assert failure.application_failure_info.type == "KeyConflict"
    assert taken.promise.public_id in failure.message


async def test_a_workflow_that_is_reset_gets_the_same_again(shop: Shop, key: str) -> None:
    order = await shop.order("by_ids", key)
    await shop.waiting(key)
    await shop.app.resolve(f"key:{key}", "paid", request_key="evt_1")
    assert await order.result() == "paid"

    assert await (await reset(shop, order.id)).result() == "paid"
    assert shop.attempts == [1, 1]


async def test_a_workflow_that_is_reset_takes_the_place_of_its_last_run(
    shop: Shop, key: str
) -> None:
    order = await shop.order("by_ids", key)
    first = await shop.waiting(key)
    again = await reset(shop, order.id)

    async def moved() -> bool:
        return await shop.waiting(key) != first

    await until(moved)
    await shop.app.resolve(f"key:{key}", "paid", request_key="evt_1")
    assert await again.result() == "paid"


async def reset(shop: Shop, order: str) -> WorkflowHandle[Any, Any]:
    """Another run, from the workflow's first task on."""
    answer = await shop.client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=shop.client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=order),
            workflow_task_finish_event_id=4,
            request_id=str(uuid.uuid4()),
        )
    )
    return shop.client.get_workflow_handle(order, run_id=answer.run_id)


async def test_a_cancelled_activity_is_let_go(shop: Shop, key: str) -> None:
    order = await shop.order("by_ids", key, beat=60)
    owner = await shop.waiting(key)
    await order.cancel()

    async def asked() -> bool:
        return await shop.events(order, "ACTIVITY_TASK_CANCEL_REQUESTED") == 1

    await until(asked)
    assert await shop.activities.look() == 0
    with pytest.raises(WorkflowFailureError) as raised:
        await order.result()
    assert isinstance(raised.value.cause, CancelledError)
    assert (await shop.app.engine.execution("default", owner)).status.name == "CANCELLED"
    # The key is free for another one.
    await shop.order("by_ids", key)
    assert await shop.waiting(key) != owner


@pytest.mark.parametrize("way", ["by_ids", "by_token"])
async def test_an_activity_whose_workflow_is_gone_is_let_go(shop: Shop, key: str, way: str) -> None:
    order = await shop.order(way, key)
    owner = await shop.waiting(key)
    assert await shop.activities.look() == 1
    await order.terminate()

    async with shop.activities.looking_after(every=0.01):
        execution = await shop.app.engine.wait("default", owner, 60)
    assert execution.status.name == "CANCELLED"


async def test_heartbeats_keep_it_alive(shop: Shop, key: str) -> None:
    async with shop.activities.looking_after(every=0.1):
        order = await shop.order("by_ids", key, beat=1)
        await shop.waiting(key)

        async def beaten() -> bool:
            (pending,) = (await order.describe()).raw_description.pending_activities
            started, beat = pending.last_started_time, pending.last_heartbeat_time
            # Longer than it may be silent.
            return beat.ToMilliseconds() - started.ToMilliseconds() > 1500

        await until(beaten)
        await shop.app.resolve(f"key:{key}", "paid", request_key="evt_1")
        assert await order.result() == "paid"
    assert shop.attempts == [1]


@pytest.mark.parametrize("told", [{}, {"workflow_id": "order"}, {"token": b"", "workflow_id": "o"}])
async def test_an_activity_has_to_be_told(told: dict[str, Any]) -> None:
    activities = Activities(App(), lambda: Client.connect("nowhere"))
    with pytest.raises(InvalidInput, match="token, or by workflow_id and activity_id"):
        await activities.register("key", **told)


async def test_a_token_that_is_none_ends_the_waiting(shop: Shop, key: str) -> None:
    await shop.app.resolve(f"key:{key}", "paid", park=True)
    handle = await shop.activities.register(key, token=b"nonsense")

    with pytest.raises(oncekey.TerminalError, match="does not take this activity"):
        await handle.result(30)


async def test_a_token_that_is_none_keeps_nobody_from_being_looked_after(
    shop: Shop, key: str
) -> None:
    await shop.order("by_ids", key)
    await shop.waiting(key)
    handle = await shop.activities.register(f"{key}-2", token=b"nonsense")
    await shop.waiting(f"{key}-2")

    assert await shop.activities.look() == 1
    assert (await handle.execution()).status.name == "CANCELLED"


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_killed_process_is_followed_by_another(
    url: str, temporal: str, key: str, when: str
) -> None:
    shop = Shop(await Client.connect(temporal), App())
    async with shop.working():
        async with shop.app.open(url, lease=1.0):
            order = await shop.order("by_ids", key)
            owner = await shop.waiting(key)
        doomed = Process(resolve_and_die, url, temporal, key, when)
        assert await asyncio.to_thread(doomed.join) == -signal.SIGKILL
        async with shop.app.open(url, lease=1.0):
            told = await (await shop.app.handle(owner)).result(60)
            assert await order.result() == "paid"
    assert told == {"before": "done", "after": "over"}[when]
    assert await shop.events(order, "ACTIVITY_TASK_COMPLETED") == 1
