"""Activities of Temporal as they are reached from here: completed, failed, and asked after.

An activity that is over refuses whatever is told of it, so that telling it twice is harmless.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from temporalio.client import (
    AsyncActivityCancelledError,
    AsyncActivityHandle,
    Client,
    WorkflowExecutionStatus,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from oncekey.core.errors import TerminalError

Connect = Callable[[], Awaitable[Client]]
Found = Literal["waits", "cancelled", "over"]
_PATIENCE = timedelta(seconds=10)


@dataclass(frozen=True)
class Activity:
    """One that completes elsewhere: by the token of its attempt, or by ids, whichever attempt."""

    token: bytes | None = None
    workflow_id: str | None = None
    run_id: str | None = None
    activity_id: str | None = None


@dataclass(frozen=True)
class Refusal:
    """How an activity fails."""

    type: str
    message: str
    reason: Any = None
    retryable: bool = False


class Reach:
    """One client, connected when it is first needed."""

    def __init__(self, client: Client | Connect) -> None:
        self._client = client if isinstance(client, Client) else None
        self._connect = None if isinstance(client, Client) else client

    async def complete(self, activity: Activity, value: Any) -> str:
        handle = await self._handle(activity)
        return await self._told(activity, handle.complete(value, rpc_timeout=_PATIENCE))

    async def fail(self, activity: Activity, refusal: Refusal) -> str:
        details = () if refusal.reason is None else (refusal.reason,)
        error = ApplicationError(
            refusal.message, *details, type=refusal.type, non_retryable=not refusal.retryable
        )
        handle = await self._handle(activity)
        return await self._told(activity, handle.fail(error, rpc_timeout=_PATIENCE))

    async def look(self, activity: Activity) -> Found:
        """Heartbeat, and learn what became of it. One whose cancelling is asked for is told that
        it is done."""
        handle = await self._handle(activity)
        try:
            await handle.heartbeat(rpc_timeout=_PATIENCE)
        except AsyncActivityCancelledError as error:
            # An attempt that is paused or reset comes again; nobody has cancelled it.
            if error.details is not None and not error.details.cancel_requested:
                return "waits"
            await self._told(activity, handle.report_cancellation(rpc_timeout=_PATIENCE))
            return "cancelled"
        except RPCError as error:
            if error.status is RPCStatusCode.INVALID_ARGUMENT:
                return "over"
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            return "waits" if await self._is_between_attempts(activity) else "over"
        return "waits"

    async def _told(self, activity: Activity, call: Awaitable[None]) -> str:
        """`done`, or `over` when there is nothing left to tell. Raises what is worth a retry."""
        try:
            await call
        except RPCError as error:
            if error.status is RPCStatusCode.INVALID_ARGUMENT:
                raise TerminalError(f"Temporal does not take this activity: {error}") from error
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            if await self._is_between_attempts(activity):
                raise
            return "over"
        return "done"

    async def _is_between_attempts(self, activity: Activity) -> bool:
        """An activity that is not found now may be found in its next attempt; its token will not,
        for that is of one attempt."""
        if activity.workflow_id is None:
            return False
        client = await self._connected()
        workflow = client.get_workflow_handle(activity.workflow_id, run_id=activity.run_id)
        try:
            found = await workflow.describe(rpc_timeout=_PATIENCE)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            return False
        # A workflow that was terminated still lists what it waited for.
        running = found.status is WorkflowExecutionStatus.RUNNING
        pending = found.raw_description.pending_activities
        return running and any(each.activity_id == activity.activity_id for each in pending)

    async def _handle(self, activity: Activity) -> AsyncActivityHandle:
        client = await self._connected()
        if activity.token is not None:
            return client.get_async_activity_handle(task_token=activity.token)
        assert activity.workflow_id is not None
        assert activity.activity_id is not None
        return client.get_async_activity_handle(
            workflow_id=activity.workflow_id,
            run_id=activity.run_id,
            activity_id=activity.activity_id,
        )

    async def _connected(self) -> Client:
        if self._client is None:
            assert self._connect is not None
            self._client = await self._connect()
        return self._client
