"""How an execution gets to a process that knows its code."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import restate
from restate.retry_policy import InvocationRetryPolicy

from oncekey.core.execution import Sort
from oncekey.stores.restate.objects import add_to_service
from oncekey.stores.restate.values import pack, unpack
from oncekey.stores.restate.work.calls import space_of

SERVICE = "oncekey.Work"
# A name that nobody serves now is looked for now and then, until somebody does.
_PATIENT = InvocationRetryPolicy(
    initial_interval=timedelta(milliseconds=100),
    exponentiation_factor=2.0,
    max_interval=timedelta(minutes=1),
    max_attempts=1_000_000_000,
    on_max_attempts="pause",
)
_DEFAULT = "default"


def run_service_of(space: str, sort: Sort, name: str) -> str:
    """The service that runs executions of a name."""
    kind = "task" if sort is Sort.TASK else "workflow"
    return f"oncekey.{kind}.{name}" if space == _DEFAULT else f"oncekey.{space}.{kind}.{name}"


def dispatch(ctx: Any, sort: Sort, name: str, number: int, count: int) -> None:
    """By way of a service: one that nobody knows any more would keep the execution itself shut."""
    service = run_service_of(space_of(ctx), sort, name)
    ctx.generic_send(SERVICE, "dispatch", pack([service, number, count]))


async def _dispatch(ctx: Any, body: bytes) -> bytes:
    service, number, count = unpack(body)
    ctx.generic_send(service, "run", pack([number, count]))
    return pack(True)


def work_service() -> restate.Service:
    made = restate.Service(
        SERVICE, journal_retention=timedelta(0), invocation_retry_policy=_PATIENT
    )
    add_to_service(made, "dispatch", _dispatch)
    return made
