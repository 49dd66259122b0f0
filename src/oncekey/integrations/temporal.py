"""Activities of Temporal that wait for a keyed promise, and end with it.

Each is a workflow of OnceKey that waits for the promise and then tells Temporal: whatever process
dies in between, another one goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, NoReturn

import msgspec
from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from oncekey.core.errors import (
    ControlRefused,
    InvalidInput,
    KeyConflict,
    NotFound,
    OnceKeyError,
    PromiseRejected,
    PromiseTimedOut,
    TerminalError,
)
from oncekey.core.execution import Execution, PromiseState, Sort, Status
from oncekey.core.work import ListExecutions
from oncekey.durable.app import TENANT, App, Handle
from oncekey.durable.context import Context, Duration
from oncekey.durable.raising import error_of
from oncekey.durable.retry import Retry, seconds_of
from oncekey.durable.values import decode
from oncekey.integrations.temporal_reach import Activity, Connect, Reach, Refusal

NAME = "complete-temporal-activity"
# A week of attempts, a minute apart: Temporal may be away for long, and what is known is kept.
_PATIENT = Retry(attempts=10_000)
_PAGE = 50

_log = logging.getLogger("oncekey.temporal")


@dataclass(frozen=True)
class Waiting:
    """What the workflow is started with. The same for every attempt of the activity."""

    key: str
    activity: Activity
    timeout: float
    until: datetime | None = None
    retryable: bool = False


@dataclass(frozen=True)
class Holder:
    """Of the key that is waited for: it was settled for this activity, waits no longer, or has it
    still."""

    is_settled: bool = False
    value: Any = None
    refusal: Refusal | None = None
    is_gone: bool = False


class Activities:
    """Activities that wait for promises: `await activities.wait_for("stripe:ch_42")` in one.

    `app` runs the waiting, in every process that opens it. `client` is a client of Temporal, or a
    function that connects one when it is first needed. `name`: of the workflow that waits; those
    of a second namespace need another one.
    """

    def __init__(self, app: App, client: Client | Connect, *, name: str = NAME) -> None:
        self._app = app
        self._reach = Reach(client)
        self._name = name
        app.workflow(name=name, retry=_PATIENT)(self._complete)

    # -- registering ---------------------------------------------------------------------

    async def wait_for(
        self,
        key: str,
        *,
        timeout: Duration | None = None,
        retryable: bool = False,
        tenant: str = TENANT,
    ) -> NoReturn:
        """The last line of an activity: it completes when the promise `key` is settled.

        Resolved, its value is the result; rejected or timed out, the activity fails, and Temporal
        tries it again only when it is `retryable`. `timeout`: as long as the activity may take,
        unless given. Every attempt of the activity waits for the same promise.
        """
        info = activity.info()
        if info.is_local:
            raise _refused(
                "LocalActivity",
                "a local activity ends where it began: call it with execute_activity, so that "
                "others can complete it",
            )
        whole = info.schedule_to_close_timeout
        until = info.scheduled_time + whole if whole and timeout is None else None
        once = info.start_to_close_timeout or timedelta(days=1)
        seconds = seconds_of(once if timeout is None else timeout)
        waiting = Waiting(key, _current(info), seconds, until, retryable)
        handle = await self._start(waiting, tenant)
        if not handle.created and (await handle.execution()).status.is_over:
            raise _refused(
                "AlreadyEnded",
                f"this activity has waited for {key} before, in {handle.id}: an activity id is "
                "used once within a workflow",
            )
        activity.raise_complete_async()

    async def register(
        self,
        key: str,
        *,
        token: bytes | None = None,
        workflow_id: str | None = None,
        run_id: str | None = None,
        activity_id: str | None = None,
        timeout: Duration = timedelta(days=1),
        retryable: bool = False,
        tenant: str = TENANT,
    ) -> Handle:
        """As `wait_for`, for an activity that is told by its task token, or by the ids of its
        workflow and its own. A token is of one attempt; ids mean whichever attempt there is."""
        by_ids = workflow_id is not None and activity_id is not None
        if (token is None) is not by_ids or (token is not None and workflow_id is not None):
            raise InvalidInput(
                "an activity is told by its token, or by workflow_id and activity_id"
            )
        told = Activity(token, workflow_id, run_id, activity_id)
        return await self._start(Waiting(key, told, seconds_of(timeout), None, retryable), tenant)

    async def _start(self, waiting: Waiting, tenant: str) -> Handle:
        named = msgspec.json.encode((waiting.key, waiting.activity))
        key = f"temporal:{sha256(named).hexdigest()}"
        return await self._app.start(
            self._complete, waiting, key=key, tenant=tenant, on_failed="free"
        )

    # -- the workflow --------------------------------------------------------------------

    async def _complete(self, ctx: Context, waiting: Waiting) -> str:
        value, refusal = await self._outcome(ctx, waiting)
        if refusal is None:
            return await ctx.run("complete", self._reach.complete, waiting.activity, value)
        told = await ctx.run("fail", self._reach.fail, waiting.activity, refusal)
        if refusal.retryable:
            # The next attempt waits anew: what has failed gives its key back.
            raise TerminalError(refusal.message)
        return told

    async def _outcome(self, ctx: Context, waiting: Waiting) -> tuple[Any, Refusal | None]:
        conflict: KeyConflict | None = None
        for name in ("promise", "promise-again"):
            try:
                timeout = _left(ctx, waiting)
                return await ctx.promise(name, key=waiting.key, timeout=timeout), None
            except (PromiseRejected, PromiseTimedOut) as error:
                return None, _refusal_of(error, waiting.retryable)
            except KeyConflict as error:
                conflict = error
            held_by = conflict.existing_promise_id
            holder = await ctx.run(f"{name}-holder", self._holder, ctx.tenant, held_by, waiting)
            if holder.is_settled:
                return holder.value, holder.refusal
            if not holder.is_gone:
                break
        # The key will be free some day, so that another attempt makes sense.
        return None, Refusal("KeyConflict", f"{waiting.key}: {conflict}", retryable=True)

    async def _holder(self, tenant: str, promise_id: str, waiting: Waiting) -> Holder:
        """A workflow of Temporal that was reset asks for the same key again: it gets what the run
        before got, or takes the place of the one that waits for nobody any more."""
        try:
            execution = await self._app.engine.execution(tenant, promise_id.partition(":")[0])
            promise = await self._app.promise(f"id:{promise_id}", tenant=tenant)
        except NotFound:
            return Holder()
        if execution.name != self._name:
            return Holder()
        other = _waiting_of(execution)
        is_same = (other.activity.workflow_id or "") == waiting.activity.workflow_id
        if promise.state is PromiseState.RESOLVED and is_same:
            return Holder(True, decode(promise.body or b"null", Any, "the value of the promise"))
        if promise.state is PromiseState.REJECTED and is_same:
            return Holder(True, None, _refusal_of(error_of(promise.body), waiting.retryable))
        if promise.state is PromiseState.PENDING:
            return Holder(is_gone=not await self._look_at(execution))
        return Holder(is_gone=promise.state in {PromiseState.TIMED_OUT, PromiseState.CANCELLED})

    # -- looking after -------------------------------------------------------------------

    @asynccontextmanager
    async def looking_after(self, every: Duration = 30.0) -> AsyncIterator[None]:
        """Heartbeat every activity that waits, and let go of those that are cancelled or over."""
        task = asyncio.create_task(self._look_again_and_again(seconds_of(every)))
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def look(self) -> int:
        """Once, at all of them; answers how many still wait."""
        waiting, before = 0, None
        while True:
            query = ListExecutions(
                None, Status.WAITING, self._name, Sort.WORKFLOW, before=before, limit=_PAGE
            )
            page = await self._app.engine.executions(query)
            for execution in page:
                waiting += await self._look_at(execution)
            if len(page) < _PAGE:
                return waiting
            before = page[-1].id

    async def _look_again_and_again(self, every: float) -> None:
        while True:
            try:
                await self.look()
            except (OnceKeyError, RPCError, RuntimeError) as error:
                _log.warning("activities were not looked after: %s", error)
            await asyncio.sleep(every)

    async def _look_at(self, execution: Execution) -> bool:
        """Whether the activity waits still. When it does not, neither does its workflow here."""
        found = await self._reach.look(_waiting_of(execution).activity)
        if found != "waits":
            with suppress(ControlRefused):
                await self._app.cancel(
                    execution.public_id,
                    request_key=f"temporal:{execution.public_id}",
                    tenant=execution.tenant,
                )
        return found == "waits"


def _refused(kind: str, message: str) -> ApplicationError:
    return ApplicationError(message, type=kind, non_retryable=True)


def _current(info: activity.Info) -> Activity:
    # Of an activity without a workflow the token is all there is.
    if info.workflow_id is None:
        return Activity(token=info.task_token)
    return Activity(None, info.workflow_id, info.workflow_run_id, info.activity_id)


def _waiting_of(execution: Execution) -> Waiting:
    found: Waiting = decode(execution.input, Waiting, f"the input of {execution.public_id}")
    return found


def _left(ctx: Context, waiting: Waiting) -> float:
    """Seconds: up to the end of the activity itself, or as long as was said."""
    if waiting.until is None:
        return waiting.timeout
    return max(0.0, (waiting.until - ctx.now()).total_seconds())


def _refusal_of(error: OnceKeyError, retryable: bool) -> Refusal:
    reason = getattr(error, "reason", None)
    named = reason.get("type") if isinstance(reason, dict) else None
    kind = named if isinstance(named, str) and named else type(error).__name__
    return Refusal(kind, str(error), reason, retryable)
