"""The door every call comes in by: who calls, for which tenant, and how a refusal goes out."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import wraps
from typing import Any, NamedTuple, NoReturn, Protocol, TypeVar

from google.protobuf.message import DecodeError, Message
from grpc.aio import ServicerContext

from oncekey.api.grpc.statuses import Refusal, fault, refusal_of, unauthenticated
from oncekey.api.patience import Patience
from oncekey.core.callers import Caller, Callers
from oncekey.core.errors import InvalidInput, KeyInvalid, NotFound, OnceKeyError
from oncekey.core.key import parse_key
from oncekey.wire.credentials import secret_in
from oncekey.wire.headers import KEY

Context = ServicerContext[Any, Any]
Metadata = Iterable[tuple[str, str | bytes]]
Service = TypeVar("Service", bound="Behind")
Asked = TypeVar("Asked", bound=Message)
Answered = TypeVar("Answered", bound=Message)

_log = logging.getLogger(__name__)


class Call(NamedTuple):
    """A call whose caller is known. `tenant` is always the caller's own."""

    caller: Caller
    idempotency_key: str | None
    seconds_left: float | None
    """Until its deadline."""

    @property
    def tenant(self) -> str:
        return self.caller.tenant

    def key(self, name: str, field: str) -> str | None:
        """The key in the field of that name, or else in the metadata."""
        given = self.idempotency_key
        if field and given is not None and field != given:
            raise InvalidInput(f"{name} and the metadata 'idempotency-key' differ; send one")
        return field or given


class Door:
    def __init__(self, callers: Callers) -> None:
        self._callers = callers
        self.patience = Patience()

    async def admit(self, request: Message | DecodeError, context: Context) -> Call | None:
        """None for a caller nobody knows. Raises `NotFound` for a tenant that is another's."""
        metadata = context.invocation_metadata() or ()
        secret = secret_in(_headers_of(metadata))
        caller = None if secret is None else await self._callers.identify(secret)
        if caller is None:
            return None
        if isinstance(request, DecodeError):
            raise InvalidInput("the request is not a message of oncekey.proto, with texts in UTF-8")
        if getattr(request, "tenant", "") not in {"", caller.tenant}:
            raise NotFound
        return Call(caller, _key_in(metadata), context.time_remaining())


class Behind(Protocol):
    """A service behind the door."""

    @property
    def door(self) -> Door: ...


def answered(
    method: Callable[[Service, Asked, Call], Awaitable[Answered]],
) -> Callable[[Service, Asked, Context], Awaitable[Answered]]:
    """A method of a service: it is given the call of a known caller, and may raise our errors."""

    @wraps(method)
    async def answer(service: Service, request: Asked, context: Context) -> Answered:
        try:
            call = await service.door.admit(request, context)
            if call is not None:
                return await method(service, request, call)
            refusal = unauthenticated()
        except OnceKeyError as error:
            refusal = refusal_of(error)
        except Exception:  # noqa: BLE001 - whatever it is, the caller must not read it
            _log.exception("%s failed", method.__qualname__)
            refusal = fault()
        return await _refuse(context, refusal)

    return answer


async def _refuse(context: Context, refusal: Refusal) -> NoReturn:
    await context.abort(refusal.status, refusal.message, refusal.trailers)


def _key_in(metadata: Metadata) -> str | None:
    """By the grammar of the header of the same name; a field may hold other keys."""
    keys = [value for name, value in _headers_of(metadata) if name == KEY]
    if len(keys) > 1:
        raise KeyInvalid("there are two values of the metadata 'idempotency-key'; send one")
    return parse_key(keys[0].decode()) if keys else None


def _headers_of(metadata: Metadata) -> Iterator[tuple[bytes, bytes]]:
    """As HTTP has them; what is binary is none."""
    for name, value in metadata:
        if isinstance(value, str):
            yield name.encode(), value.encode()
