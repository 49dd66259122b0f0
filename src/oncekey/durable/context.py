"""What a workflow can do. This class is its manual; every engine implements it.

A workflow is an async function that is run again from its start, after a crash or a long wait, with
everything it has done so far answered from its journal. So everything that touches the world goes
through the context, and the code around it does the same again when it is given the same answers.
"""

from __future__ import annotations

import random
import uuid
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar, overload

from oncekey.durable.retry import Retry

T = TypeVar("T")
Duration = timedelta | float | int
"""A `timedelta`, or seconds."""
Target = Callable[..., Any] | str
"""A workflow or task of the app, by its function or its name."""


class Context(ABC):
    id: str
    """Of this workflow: `wf_` and 16 hexadecimal digits."""
    tenant: str
    key: str | None
    """The key it was started with."""

    # -- doing ---------------------------------------------------------------------------

    @overload
    async def run(
        self,
        name: str,
        function: Callable[..., Awaitable[T]],
        *args: Any,
        retry: Retry | None = None,
        type: Any = None,
    ) -> T: ...

    @overload
    async def run(
        self,
        name: str,
        function: Callable[..., T],
        *args: Any,
        retry: Retry | None = None,
        type: Any = None,
    ) -> T: ...

    @abstractmethod
    async def run(
        self,
        name: str,
        function: Callable[..., Any],
        *args: Any,
        retry: Retry | None = None,
        type: Any = None,  # noqa: A002
    ) -> Any:
        """Call a function, async or not, and journal its result: done once, however often the
        workflow is run again. When it raises, it is tried again by `retry` (of the workflow, unless
        given); a `TerminalError` is its result and raised here, now and in every replay.

        A process that dies in the middle leaves it undone, and it runs again: give the key of this
        step to whatever it calls. `type`: of the result, when the function has no annotation.
        """

    @abstractmethod
    async def call(
        self, target: Callable[..., Any] | str, *args: Any, key: str | None = None
    ) -> Any:
        """Start another workflow or a task, wait for it, and get its result. With a `key` there is
        one for that key, whoever starts it; without, one for this call. Raises `CallFailed`."""

    @abstractmethod
    async def start(
        self, target: Callable[..., Any] | str, *args: Any, key: str | None = None
    ) -> str:
        """Start another workflow or a task without waiting for it; answers its id."""

    # -- waiting -------------------------------------------------------------------------

    @abstractmethod
    async def promise(
        self,
        name: str,
        *,
        key: str | None = None,
        key_ttl: Duration | None = None,
        timeout: Duration | None = None,
        type: Any = None,  # noqa: A002
    ) -> Any:
        """Wait until somebody resolves the promise `{workflow id}:{name}`, by its id, by `key`, or
        by a token (see `token`), and get the value. Names are used once within a workflow.

        Raises `PromiseRejected`, `PromiseTimedOut` after `timeout`, and `KeyConflict` when the key
        belongs to another promise. The key is good for `key_ttl`: a day, or the timeout if that is
        longer. A resolution that came before the promise is delivered at once.
        """

    @abstractmethod
    async def token(
        self,
        name: str,
        *,
        key: str | None = None,
        key_ttl: Duration | None = None,
        timeout: Duration | None = None,
    ) -> str:
        """Make the promise `name` without waiting for it, and get a secret that completes it, to be
        handed to somebody else. `promise(name)` then waits for it."""

    @abstractmethod
    async def event(
        self,
        key: str,
        *,
        where: str | None = None,
        timeout: Duration | None = None,
        lookback: Duration | None = None,
        type: Any = None,  # noqa: A002
    ) -> Any:
        """Wait for an event with this key whose data fit the CEL expression `where` over `input`,
        `key` and `headers`, and get its data. `lookback`: one that came so shortly before counts
        as well. Raises `ConditionInvalid` at once for a bad expression, and `PromiseTimedOut`."""

    @abstractmethod
    async def sleep(self, duration: Duration) -> None:
        """Wait, for seconds or for years; a restart does not make it longer."""

    # -- the same in every replay --------------------------------------------------------

    @abstractmethod
    def now(self) -> datetime:
        """When the last thing this workflow has seen happened: its start, or the end of a step."""

    @abstractmethod
    def random(self) -> random.Random:
        """Randomness that is the same in every replay. Not for secrets."""

    @abstractmethod
    def uuid(self) -> uuid.UUID:
        """A UUID that is the same in every replay."""
