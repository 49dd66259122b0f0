"""`once`: any function, called once for a key. Its result is kept as JSON and is everyone's."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from oncekey.core.beginning import Beginning
from oncekey.core.claim import Claim
from oncekey.core.current import under
from oncekey.core.decision import Busy, Mismatch, Proceed, Replay, Unknown
from oncekey.core.errors import (
    ClaimLost,
    ConfigurationError,
    InProgress,
    KeyReused,
    OutcomeNotKept,
    OutcomeUnknown,
    StoreError,
    TerminalError,
    ValueUnserialisable,
)
from oncekey.core.key import check_name
from oncekey.core.model import NO_FINGERPRINT, Kind, Operation, Outcome, Ref, Takeover
from oncekey.core.recovery import Recover
from oncekey.core.scope import Scope, namespace_of
from oncekey.core.steps import Call, Steps
from oncekey.core.telling import tell_decision

if TYPE_CHECKING:
    from oncekey.core.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Once:
    """How a function is called once."""

    namespace: str = ""
    """Whose key it is; the default tenant's when empty. See `namespace_of`."""
    endpoint: str = "once"
    """What the key belongs to; two endpoints never share a key."""
    fingerprint: bytes | None = None
    """Two calls with one key and different fingerprints are `KeyReused`."""
    retention: str = "interactive"
    """The class that says how long the result is kept."""
    takeover: Takeover = "rerun"
    """What a call does about one whose process died: run again, refuse, or ask `recover`."""
    recover: Recover | None = None
    wait: float = 0.0
    """Seconds to wait for a call in flight, instead of raising `InProgress` at once."""
    transaction: Any = None
    """The caller's own connection: result and effect commit together, or not at all."""
    type: Any = None
    """The type of the result; the function's return annotation when not given."""

    @classmethod
    def of(cls, options: dict[str, Any]) -> Once:
        """From the keywords of a call; what is not one of ours was meant for the function."""
        try:
            return cls(**options)
        except TypeError as error:
            raise ConfigurationError(
                f"{error}; `once` passes positional arguments on, keywords are its own: "
                f"{', '.join(cls.__dataclass_fields__)}"
            ) from None

    def steps(
        self,
        ledger: Ledger,
        key: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Steps[Any]:
        kind = self.type or _result_type(getattr(function, "__func__", function))
        operation = self._operation(key)
        digest = operation.ref.digest
        beginning = Beginning(ledger, operation, digest, self.recover, self.transaction)
        decision = ledger.recall(operation, digest) or (yield from beginning.steps(self.wait))
        tell_decision(ledger.observe, operation, decision)
        match decision:
            case Proceed(claim):
                call = Call(functools.partial(under(claim, function), *args, **kwargs), ())
                body = yield from self._run(ledger, claim, call)
                return ledger.codec.decode(body, kind)
            case Replay(record):
                assert record.outcome is not None
                return ledger.codec.decode(_value_of(record.outcome), kind)
            case Busy():
                raise InProgress
            case Mismatch():
                raise KeyReused
            case Unknown():
                raise OutcomeUnknown

    def _operation(self, key: str) -> Operation:
        scope = Scope(self.namespace or namespace_of(), self.endpoint)
        ref = Ref(scope, check_name(key))
        return Operation(ref, self._fingerprint(), "", self.retention, self.takeover)

    def _fingerprint(self) -> bytes:
        if self.fingerprint is None:
            return NO_FINGERPRINT
        return blake2b(self.fingerprint, digest_size=16).digest()

    def _run(self, ledger: Ledger, claim: Claim, call: Call) -> Steps[bytes]:
        try:
            value = yield call
        except TerminalError as error:
            outcome = Outcome(Kind.ERROR, error.status, (), str(error).encode())
            yield from claim.settle_steps(outcome, self.transaction)
            raise
        except Exception:
            # Whatever becomes of the claim, what the caller must see is why its function failed.
            if self.transaction is None:
                with suppress(ClaimLost, StoreError):
                    yield from claim.release_steps()
            claim.abandon()
            raise
        except BaseException:
            claim.abandon()
            raise
        try:
            body = ledger.codec.encode(value)
        except ValueUnserialisable:
            # It took effect: running it again would be worse than having no result to show.
            yield from claim.settle_steps(Outcome(Kind.UNKEPT), self.transaction)
            raise
        yield from claim.settle_steps(Outcome(Kind.VALUE, body=body), self.transaction)
        return body


def once(
    *,
    key: Callable[..., str],
    ledger: Ledger | Callable[[], Ledger],
    **options: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function so that each key of its arguments is handled once.

    `key` gets the arguments of the call and answers the key; `ledger` may be a function, for
    ledgers that are opened later. Other options are those of `Once`; the endpoint is the module
    and name of the function, unless given.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        settings = Once(
            **{"endpoint": f"once:{function.__module__}.{function.__qualname__}", **options}
        )

        def steps(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Ledger, Steps[Any]]:
            opened = ledger() if callable(ledger) else ledger
            return opened, settings.steps(opened, str(key(*args, **kwargs)), function, args, kwargs)

        @functools.wraps(function)
        def blocking(*args: Any, **kwargs: Any) -> Any:
            opened, todo = steps(args, kwargs)
            return opened.run(todo)

        @functools.wraps(function)
        async def awaiting(*args: Any, **kwargs: Any) -> Any:
            opened, todo = steps(args, kwargs)
            return await opened.arun(todo)

        return awaiting if inspect.iscoroutinefunction(function) else blocking

    return decorate


def _value_of(outcome: Outcome) -> bytes:
    match outcome.kind:
        case Kind.ERROR:
            raise TerminalError(outcome.body.decode(), status=outcome.status)
        case Kind.UNKEPT:
            raise OutcomeNotKept
        case _:
            return outcome.body


@functools.lru_cache(maxsize=1024)
def _result_type(function: Callable[..., Any]) -> Any:
    try:
        return typing.get_type_hints(function).get("return", Any)
    except (NameError, TypeError, AttributeError):
        # A partial, a builtin or an annotation that cannot be resolved: plain JSON then.
        return Any
