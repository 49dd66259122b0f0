"""What follows a delivery, carried out. However it ends, that is a value: nothing is raised."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from oncekey.core.errors import (
    ConfigurationError,
    InvalidInput,
    KeyReused,
    NameUnknown,
    NotFound,
    OnceKeyError,
    Refused,
    UpstreamError,
    UpstreamUnreachable,
)
from oncekey.core.execution import PromiseState, Sort
from oncekey.core.model import Headers, Operation, Outcome, Takeover
from oncekey.durable.address import ByKey
from oncekey.durable.cel import ConditionTrouble
from oncekey.durable.engine import Engine
from oncekey.durable.expressions import Expression, compile_expression
from oncekey.durable.shapes import Shape, time_of
from oncekey.webhooks.content import Content, body_of, content_of, headers_of, shown
from oncekey.webhooks.delivery import Event, Item
from oncekey.webhooks.naming import namespaced
from oncekey.webhooks.sources import SUBJECT, Source
from oncekey.webhooks.then import Forward, Publish, Resolve, Start, Then

VARIABLES = (
    ("body", "dyn"),
    ("headers", "map<string,string>"),
    ("identifier", "string"),
    ("provider", "string"),
)


class Task(NamedTuple):
    """One item of a delivery that is to be acted on."""

    source: Source
    event: Event
    item: Item
    operation: Operation
    key: str
    """Under which durable work does it: the same however often it is begun."""


# -- how it ends -----------------------------------------------------------------------------


class Done(NamedTuple):
    shape: Shape
    about: str = ""
    """What else operators are told, in the log of deliveries."""


class Failed(NamedTuple):
    """For good: the same would happen again."""

    code: str
    detail: str


class Postponed(NamedTuple):
    """It cannot be done now."""

    code: str
    detail: str
    untouched: bool
    """Whether nothing was done for sure."""


class Answered(NamedTuple):
    """By the service behind."""

    outcome: Outcome
    final: bool
    """Whether it is everyone's answer from now on."""


class Broken(NamedTuple):
    """The service behind was asked, and how it ended is not known."""

    error: UpstreamError
    again: bool
    """Whether the next attempt asks again."""


Ending = Done | Failed | Postponed | Answered | Broken


class ForwardRequest(NamedTuple):
    """For the route with this path; its identity is that of the webhook."""

    path: str
    headers: Headers
    """As they were delivered: connection headers and identity headers among them."""
    body: bytes
    tenant: str
    project: str
    subject: str
    key: str
    """With the namespace in front: what the service behind sees."""


ForwardTo = Callable[[ForwardRequest], Awaitable[Answered | Broken]]
"""Raises `UpstreamUnreachable` when nothing was sent, `UpstreamUncertain` where a request that
broke off is not to be sent again, and `ConfigurationError` when no route has the path."""
TakeoverAt = Callable[[str], Takeover]
"""What the route with this path says of a request whose process died."""


def check_then(then: Then) -> None:
    """Raises `ConditionInvalid` for an expression that cannot be used."""
    if isinstance(then, Publish | Resolve):
        _expression(then.key)


class Acting:
    def __init__(self, engine: Engine | None, forward: ForwardTo | None) -> None:
        self._engine = engine
        self._forward_to = forward

    async def act(self, task: Task) -> Ending:
        try:
            return await self._follow(task)
        except ConditionTrouble as error:
            return Failed("condition-invalid", str(error))
        except OnceKeyError as error:
            return ending_of(error)

    async def _follow(self, task: Task) -> Ending:
        match task.source.then:
            case Forward(path):
                return await self._forward(task, path)
            case Publish(key):
                return await self._publish(task, key)
            case Resolve(key):
                return await self._resolve(task, key)
            case Start(name):
                return await self._start(task, name)

    async def _forward(self, task: Task, path: str) -> Ending:
        if self._forward_to is None:
            raise ConfigurationError(f"there is no service to forward to at {path}; add a route")
        source = task.source
        request = ForwardRequest(
            path,
            task.event.delivery.headers,
            body_of(task.event, task.item),
            source.tenant,
            source.project,
            SUBJECT,
            namespaced(task.operation),
        )
        return await self._forward_to(request)

    async def _publish(self, task: Task, expression: str) -> Done:
        content, headers = content_of(task.event, task.item), headers_of(task.event)
        key = _expression(expression).text(_values(task, content, headers))
        answer = await self._durable.publish(
            task.source.tenant,
            key,
            content.body,
            headers=shown(headers.items()),
            idempotency_key=task.key,
        )
        told = {"event_id": answer.event_id, "matched": answer.matched}
        waits = "1 wait" if answer.matched == 1 else f"{answer.matched} waits"
        return Done({"status": "published", **told}, f"as {key}, which fits {waits}")

    async def _resolve(self, task: Task, expression: str) -> Done:
        content = content_of(task.event, task.item)
        key = _expression(expression).text(_values(task, content, headers_of(task.event)))
        answer = await self._durable.settle(
            task.source.tenant,
            ByKey(key),
            PromiseState.RESOLVED,
            content.body,
            request_key=task.key,
            park=True,
        )
        if answer.promise is None:
            parked = {"status": "parked", "parked_until": time_of(answer.parked_until)}
            return Done(parked, f"for the key {key}")
        status = "resolved-before" if answer.already_resolved else "resolved"
        return Done({"status": status, "promise_id": answer.promise.public_id}, f"by the key {key}")

    async def _start(self, task: Task, name: str) -> Done:
        content = content_of(task.event, task.item)
        answer = await self._durable.start(
            task.source.tenant, Sort.WORKFLOW, name, content.body, key=task.key
        )
        return Done({"status": "started", "workflow_id": answer.execution.public_id})

    @property
    def _durable(self) -> Engine:
        if self._engine is None:
            raise ConfigurationError("there is no durable work here: webhooks can only forward")
        return self._engine


def ending_of(error: OnceKeyError) -> Ending:
    """What an error means for the next attempt."""
    match error:
        case UpstreamUnreachable() | ConfigurationError() | NameUnknown():
            # Whoever runs this can mend it: a workflow, say, is known once its process starts.
            return Postponed(error.code, str(error), untouched=True)
        case UpstreamError():
            return Broken(error, again=False)
        case KeyReused() | NotFound():
            # The key is of this operation alone: an earlier attempt came that far and then died,
            # and what it did is forgotten, or was told in other words. Providers write the same
            # event differently each time.
            return Done({"status": "done-before"})
        case InvalidInput() | Refused() if not error.retryable:
            return Failed(error.code, str(error))
        case _:
            return Postponed(error.code, str(error), untouched=False)


def _expression(text: str) -> Expression:
    return compile_expression(text, VARIABLES)


def _values(task: Task, content: Content, headers: dict[str, str]) -> dict[str, Any]:
    return {
        "body": content.value,
        "headers": headers,
        "identifier": task.item.identifier,
        "provider": task.source.provider,
    }
