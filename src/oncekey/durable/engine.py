"""What runs durable work, as everybody above sees it. Engines differ; this does not.

Values go in and come out as JSON bytes. A tenant is part of every call: what belongs to another
tenant is answered exactly as what does not exist.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Literal, NamedTuple

from oncekey.core.execution import Entry, Execution, Promise, PromiseState, Sort
from oncekey.core.looking import Looked
from oncekey.core.work import Action, Event, ListExecutions, ListPromises
from oncekey.durable.address import Address

OnFailed = Literal["keep", "free"]

KEY_TTL = 24 * 3600.0
PARK_TTL = 24 * 3600.0
MAX_PAYLOAD = 1 << 20
MAX_EVENT = 256 << 10


class StartAnswer(NamedTuple):
    """`created` is false when the key had been used before, with the same name and input."""

    execution: Execution
    created: bool


class PromiseAnswer(NamedTuple):
    """`token` is told once, here."""

    promise: Promise
    token: str | None = None


class SettleAnswer(NamedTuple):
    """What became of a resolution. `promise` is None while it is parked."""

    promise: Promise | None
    already_resolved: bool
    key_used: bool
    key_new: bool
    parked_until: int | None = None


class PublishAnswer(NamedTuple):
    event_id: str
    matched: int
    key_used: bool
    key_new: bool


class ControlAnswer(NamedTuple):
    """`execution` is as it was after the action: for a fork, the new one."""

    execution_id: str
    status: str
    replayed: bool


class Engine(ABC):
    """Every method may raise `StoreUnavailable`; what else it raises stands with it."""

    @abstractmethod
    async def open(self) -> None:
        """Begin to run what waits for a process, and to keep time."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of everything in good order: others pick it up at once."""

    # -- executions ----------------------------------------------------------------------

    @abstractmethod
    async def start(
        self,
        tenant: str,
        sort: Sort,
        name: str,
        input: bytes,  # noqa: A002 - the word of the API
        *,
        key: str | None = None,
        on_failed: OnFailed = "keep",
    ) -> StartAnswer:
        """Raises `NameUnknown`, `KeyReused`, `KeyInvalid`, `PayloadTooLarge`, `InvalidInput`."""

    @abstractmethod
    async def execution(self, tenant: str | None, id: str) -> Execution:  # noqa: A002
        """Of whatever tenant for None, which is for those who look after all. Raises `NotFound`."""

    @abstractmethod
    async def wait(self, tenant: str, id: str, timeout: float) -> Execution:  # noqa: A002
        """The execution once it is over or paused, or as it is when the time is up."""

    @abstractmethod
    async def journal(self, tenant: str, id: str) -> list[Entry]:  # noqa: A002
        """Finished steps, in the order in which they ended. Raises `NotFound`."""

    @abstractmethod
    async def executions(self, query: ListExecutions) -> Looked[Execution]: ...

    @abstractmethod
    async def is_held(self, execution: Execution) -> bool | None:
        """Whether the process that runs it is alive; None for what nobody runs."""

    @abstractmethod
    async def control(
        self,
        tenant: str,
        action: Action,
        id: str,  # noqa: A002
        request_key: str,
        *,
        from_step: int | None = None,
    ) -> ControlAnswer:
        """Raises `NotFound`, `RequestKeyInvalid`, `ControlRefused` (409), `InvalidInput`.

        `from_step` of a fork: the number of the first step that is done anew, as in the journal
        (the first step is 1).
        """

    # -- promises ------------------------------------------------------------------------

    @abstractmethod
    async def create_promise(
        self,
        tenant: str,
        name: str,
        *,
        key: str | None = None,
        key_ttl: float | None = None,
        timeout: float | None = None,
        token: bool = False,
    ) -> PromiseAnswer:
        """A promise without a workflow. Raises `KeyConflict`, `KeyInvalid`, `InvalidInput`."""

    @abstractmethod
    async def promise(self, tenant: str, address: Address) -> Promise:
        """Raises `NotFound`."""

    @abstractmethod
    async def wait_promise(self, tenant: str, address: Address, timeout: float) -> Promise:
        """The promise once it is settled, or as it is when the time is up."""

    @abstractmethod
    async def promises(self, query: ListPromises) -> Looked[Promise]: ...

    @abstractmethod
    async def settle(
        self,
        tenant: str,
        address: Address,
        state: Literal[PromiseState.RESOLVED, PromiseState.REJECTED],
        body: bytes,
        *,
        request_key: str | None = None,
        park: bool = False,
        park_ttl: float = PARK_TTL,
    ) -> SettleAnswer:
        """Resolve with a value, or reject with a failure (see `failure.py`).

        Raises `NotFound`, `KeyReused` (the request key was for another promise), `PromiseOver` (it
        expired, timed out or was cancelled; `.state` says which), `PayloadTooLarge`.
        """

    # -- events --------------------------------------------------------------------------

    @abstractmethod
    async def publish(
        self,
        tenant: str,
        key: str,
        data: bytes,
        *,
        headers: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
    ) -> PublishAnswer:
        """Raises `KeyReused`, `KeyInvalid`, `PayloadTooLarge`, `InvalidInput`."""

    @abstractmethod
    async def events(
        self,
        tenant: str | None,
        key: str | None = None,
        limit: int = 50,
        *,
        before: int | None = None,
        look: int | None = None,
    ) -> Looked[Event]:
        """Those that are kept still, newest first; of whatever tenant for None. With `look` only so
        many are looked at."""
