"""The app: which workflows and tasks there are, and the verbs of durable work in Python."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Self, TypeVar, overload

from oncekey.core.errors import ConfigurationError
from oncekey.core.execution import Execution, Promise, PromiseState, Sort, Status
from oncekey.core.ledger import Ledger
from oncekey.durable.address import address_of
from oncekey.durable.choice import engine_for
from oncekey.durable.context import Duration
from oncekey.durable.definition import Definition, define
from oncekey.durable.engine import (
    PARK_TTL,
    ControlAnswer,
    Engine,
    OnFailed,
    PublishAnswer,
    SettleAnswer,
)
from oncekey.durable.raising import error_of
from oncekey.durable.retry import Retry, seconds_of
from oncekey.durable.signature import Signature, pack_arguments
from oncekey.durable.values import decode, encode

F = TypeVar("F", bound=Callable[..., Any])
_LONG = 3600.0
TENANT = "default"


class _Options(NamedTuple):
    name: str | None
    retry: Retry | None
    timeout: Duration | None
    keep: Duration | None
    concurrency: int | None


class Handle:
    """A workflow or task that was started: its id, and its result when there is one."""

    def __init__(
        self, app: App, execution: Execution, definition: Definition | None, created: bool
    ) -> None:
        self.id = execution.public_id
        self.created = created
        """False when its key had been used before."""
        self._app = app
        self._tenant = execution.tenant
        self._definition = definition

    async def execution(self) -> Execution:
        return await self._app.engine.execution(self._tenant, self.id)

    async def result(self, timeout: Duration | None = None) -> Any:
        """What it returned; raises what it failed with, or `TimeoutError`."""
        left = None if timeout is None else seconds_of(timeout)
        while True:
            wait = _LONG if left is None else left
            found = await self._app.engine.wait(self._tenant, self.id, wait)
            if found.status.is_over:
                break
            if left is not None or found.status is Status.PAUSED:
                raise TimeoutError(f"{self.id} is {found.status.name.lower()}, not over")
        if found.status is not Status.SUCCEEDED:
            raise error_of(found.result)
        kind = Any if self._definition is None else self._definition.signature.result
        return decode(found.result or b"null", kind, f"the result of {found.name}")


class App:
    """Register workflows and tasks with the decorators, then `open` it on a store.

    `concurrency`: how many run at once in one process. `resident`: how many of those that wait keep
    their place in memory; the others are replayed from their journals when they are woken.
    """

    def __init__(
        self,
        *,
        concurrency: int = 1000,
        resident: int = 1000,
        retry: Retry | None = None,
    ) -> None:
        if concurrency < 1 or resident < 0:
            raise ConfigurationError(
                "an app needs a concurrency of 1 or more, and no negative bound"
            )
        self._limits = {"concurrency": concurrency, "resident": resident}
        self._retry = retry or Retry()
        self._definitions: dict[tuple[Sort, str], Definition] = {}
        self._by_function: dict[Callable[..., Any], Definition] = {}
        self._engine: Engine | None = None

    # -- registering ---------------------------------------------------------------------

    @overload
    def workflow(self, function: F, /) -> F: ...

    @overload
    def workflow(
        self,
        /,
        *,
        name: str | None = ...,
        retry: Retry | None = ...,
        timeout: Duration | None = ...,
        keep: Duration | None = ...,
        concurrency: int | None = ...,
    ) -> Callable[[F], F]: ...

    def workflow(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        retry: Retry | None = None,
        timeout: Duration | None = None,
        keep: Duration | None = None,
        concurrency: int | None = None,
    ) -> Any:
        """An async function of a `Context` and its input, as a workflow.

        `name`: the function's own unless given. `retry`: of its steps, and of its code. `timeout`:
        after which it fails. `keep`: how long it can be looked at once it is over. `concurrency`:
        how many of it run at once in one process.
        """
        options = _Options(name, retry, timeout, keep, concurrency)
        return self._register(Sort.WORKFLOW, function, options)

    @overload
    def task(self, function: F, /) -> F: ...

    @overload
    def task(
        self,
        /,
        *,
        name: str | None = ...,
        retry: Retry | None = ...,
        timeout: Duration | None = ...,
        keep: Duration | None = ...,
        concurrency: int | None = ...,
    ) -> Callable[[F], F]: ...

    def task(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        retry: Retry | None = None,
        timeout: Duration | None = None,
        keep: Duration | None = None,
        concurrency: int | None = None,
    ) -> Any:
        """A function, async or not, as a task: queued, retried, finished. Options as above."""
        options = _Options(name, retry, timeout, keep, concurrency)
        return self._register(Sort.TASK, function, options)

    def _register(self, sort: Sort, function: Callable[..., Any] | None, options: _Options) -> Any:
        if function is None:
            return lambda given: self._register(sort, given, options)
        definition = define(
            sort,
            function,
            options.name,
            retry=options.retry or self._retry,
            timeout=None if options.timeout is None else seconds_of(options.timeout),
            keep=None if options.keep is None else seconds_of(options.keep),
            concurrency=options.concurrency,
        )
        if definition.place in self._definitions:
            raise ConfigurationError(f"there are two {sort.name.lower()}s named {definition.name}")
        self._definitions[definition.place] = definition
        self._by_function[function] = definition
        return function

    @property
    def definitions(self) -> tuple[Definition, ...]:
        return tuple(self._definitions.values())

    # -- running -------------------------------------------------------------------------

    def engine_on(self, ledger: Ledger, **options: Any) -> Engine:
        """An engine, not yet open, that runs the app's work on the store of `ledger`."""
        return engine_for(ledger, self.definitions, **self._limits, **options)

    @asynccontextmanager
    async def using(self, engine: Engine) -> AsyncIterator[Self]:
        """The verbs below are those of `engine` until the block ends."""
        if self._engine is not None:
            raise ConfigurationError("the app is open already")
        await engine.open()
        self._engine = engine
        try:
            yield self
        finally:
            self._engine = None
            await engine.close()

    @property
    def engine(self) -> Engine:
        if self._engine is None:
            raise ConfigurationError("the app is not open: use `async with app.open(url):`")
        return self._engine

    # -- verbs ---------------------------------------------------------------------------

    async def start(
        self,
        target: Callable[..., Any] | str,
        *args: Any,
        key: str | None = None,
        tenant: str = TENANT,
        on_failed: OnFailed = "keep",
    ) -> Handle:
        """Start a workflow or task; with a key that was used before, find the one it started.

        `on_failed="free"`: when it fails or is cancelled, its key can be used again.
        """
        definition = self._definition_of(target)
        body = pack_arguments(definition.signature, args)
        answer = await self.engine.start(
            tenant, definition.sort, definition.name, body, key=key, on_failed=on_failed
        )
        return Handle(self, answer.execution, definition, answer.created)

    async def handle(self, id: str, *, tenant: str = TENANT) -> Handle:  # noqa: A002
        """Of what was started before. Raises `NotFound`."""
        execution = await self.engine.execution(tenant, id)
        definition = self._definitions.get((execution.sort, execution.name))
        return Handle(self, execution, definition, created=False)

    async def promise(
        self, address: str, *, tenant: str = TENANT, wait: Duration | None = None
    ) -> Promise:
        """The promise at `id:…` or `key:…`; `wait`: until it is settled, so long at most."""
        if wait is None:
            return await self.engine.promise(tenant, address_of(address))
        return await self.engine.wait_promise(tenant, address_of(address), seconds_of(wait))

    async def resolve(
        self,
        address: str,
        value: Any = None,
        *,
        request_key: str | None = None,
        park: bool = False,
        park_ttl: Duration = PARK_TTL,
        tenant: str = TENANT,
    ) -> SettleAnswer:
        """Resolve the promise at `id:…`, `key:…` or a token. `park`: when the key is unknown, keep
        the value for `park_ttl` until its promise is made."""
        return await self.engine.settle(
            tenant,
            address_of(address),
            PromiseState.RESOLVED,
            encode(value, "the value of the promise"),
            request_key=request_key,
            park=park,
            park_ttl=seconds_of(park_ttl),
        )

    async def reject(
        self,
        address: str,
        reason: Any = None,
        *,
        request_key: str | None = None,
        park: bool = False,
        park_ttl: Duration = PARK_TTL,
        tenant: str = TENANT,
    ) -> SettleAnswer:
        """As `resolve`; the workflow gets a `PromiseRejected`."""
        return await self.engine.settle(
            tenant,
            address_of(address),
            PromiseState.REJECTED,
            encode(reason, "the reason of the rejection"),
            request_key=request_key,
            park=park,
            park_ttl=seconds_of(park_ttl),
        )

    async def publish(
        self,
        key: str,
        data: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
        tenant: str = TENANT,
    ) -> PublishAnswer:
        """Publish an event: every workflow that waits for one like it goes on."""
        body = encode(data, "the data of the event")
        return await self.engine.publish(
            tenant, key, body, headers=headers, idempotency_key=idempotency_key
        )

    async def cancel(self, id: str, *, request_key: str, tenant: str = TENANT) -> ControlAnswer:  # noqa: A002
        return await self.engine.control(tenant, "cancel", id, request_key)

    async def resume(self, id: str, *, request_key: str, tenant: str = TENANT) -> ControlAnswer:  # noqa: A002
        """Go on with what is paused."""
        return await self.engine.control(tenant, "resume", id, request_key)

    async def fork(
        self,
        id: str,  # noqa: A002
        from_step: int,
        *,
        request_key: str,
        tenant: str = TENANT,
    ) -> ControlAnswer:
        """Start anew from a step of the journal, with what was done before it."""
        return await self.engine.control(tenant, "fork", id, request_key, from_step=from_step)

    def _definition_of(self, target: Callable[..., Any] | str) -> Definition:
        if callable(target):
            found = self._by_function.get(target)
            if found is None:
                raise ConfigurationError(f"{target!r} is not registered with this app")
            return found
        for sort in Sort:
            if (sort, target) in self._definitions:
                return self._definitions[sort, target]
        # Another process may know it: its input is what is given.
        return Definition(Sort.WORKFLOW, target, _elsewhere, Signature.anything(), self._retry)


async def _elsewhere() -> None:
    """Stands for the function of a workflow that other processes run."""
