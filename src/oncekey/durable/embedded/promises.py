"""Promises seen from outside: made without a workflow, looked at, waited for, settled."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from oncekey.core.answers import (
    AlreadySettled,
    KeyExpired,
    KeyTaken,
    Parked,
    RequestKeyReused,
    Settled,
)
from oncekey.core.errors import (
    InvalidInput,
    KeyConflict,
    KeyReused,
    NotFound,
    PayloadTooLarge,
    PromiseOver,
)
from oncekey.core.execution import (
    Promise,
    PromiseKind,
    PromiseState,
    execution_number_of,
    promise_place_of,
)
from oncekey.core.ports import Gone, Insert
from oncekey.core.work import FindPromise, ListPromises, Make, Park, Resolve, Target
from oncekey.durable.address import Address, ById, ByKey, ByName, ByToken
from oncekey.durable.embedded.asking import PROMISES, REQUESTS, ref_of
from oncekey.durable.embedded.watching import LOOK_AGAIN
from oncekey.durable.engine import KEY_TTL, MAX_PAYLOAD, PromiseAnswer, SettleAnswer
from oncekey.durable.failure import encode_failure
from oncekey.durable.nesting import check_depth
from oncekey.durable.raising import rejection_of
from oncekey.durable.tokens import digest_of, is_token, new_token

if TYPE_CHECKING:
    from oncekey.durable.embedded.asking import Asking
    from oncekey.durable.embedded.runs import Runs
    from oncekey.durable.embedded.watching import Watching

# A provider redelivers for days; its request keys are kept as long.
_REQUEST_KEPT = 7 * 24 * 3600 * 1000
_MAX_NAME = 200


class Promises:
    def __init__(self, asking: Asking, watching: Watching, runs: Runs) -> None:
        self._asking = asking
        self._watching = watching
        self._runs = runs

    async def create(
        self,
        tenant: str,
        name: str,
        *,
        key: str | None,
        key_ttl: float | None,
        timeout: float | None,
        token: bool,
    ) -> PromiseAnswer:
        secret = new_token() if token else None
        ttl = key_ttl if key_ttl is not None else max(KEY_TTL, timeout or 0.0)
        while True:
            promise = self._new(tenant, _checked(name), timeout)
            insert = None
            if key is not None:
                keep = round(ttl * 1000)
                insert = self._asking.insert(tenant, PROMISES, key, promise.id, keep=keep)
            digest = None if secret is None else digest_of(secret)
            answer = await self._asking.ask(Make(promise, insert, digest))
            if isinstance(answer, KeyTaken):
                raise KeyConflict(existing_promise_id=answer.promise.public_id)
            if not isinstance(answer, Gone):
                break
        if promise.due_at is not None:
            self._runs.timers.expect(promise.due_at)
        expires_at = None if insert is None else insert.expires_at
        made = answer.promise._replace(key=key, key_expires_at=expires_at)
        return PromiseAnswer(made, secret)

    async def find(self, tenant: str, address: Address) -> Promise:
        found: Promise | None = await self._asking.ask(FindPromise(self._target(tenant, address)))
        now = self._asking.clock.now()
        if found is None or found.kind is not PromiseKind.PROMISE:
            raise _unknown()
        if isinstance(address, ByKey) and (found.key_expires_at or now + 1) <= now:
            raise _unknown()
        return found

    async def keyed(self, query: ListPromises) -> list[Promise]:
        """The one that has the key, if it is what else is asked for."""
        assert query.tenant is not None
        assert query.key is not None
        target = Target(query.tenant, digest=ref_of(query.tenant, PROMISES, query.key).digest)
        found: Promise | None = await self._asking.ask(FindPromise(target))
        fits = (
            found is not None
            and query.state in {None, found.state}
            and query.kind in {None, found.kind}
            and query.execution in {None, found.execution}
            and (query.before is None or found.id < query.before)
        )
        return [found] if found is not None and fits else []

    async def wait(self, tenant: str, address: Address, timeout: float) -> Promise:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        found = await self.find(tenant, address)
        while found.state is PromiseState.PENDING and (left := deadline - loop.time()) > 0:
            future = self._watching.enter(found.id)
            found = await self.find(tenant, address)
            pause = min(left, LOOK_AGAIN) if found.state is PromiseState.PENDING else 0.0
            await self._watching.wait(found.id, future, pause)
            found = await self.find(tenant, address)
        return found

    async def settle(
        self,
        tenant: str,
        address: Address,
        state: PromiseState,
        body: bytes,
        *,
        request_key: str | None,
        park_ttl: float | None,
    ) -> SettleAnswer:
        """Resolve or reject; the answer is the same however often it is asked for by one key."""
        if len(body) > MAX_PAYLOAD:
            raise PayloadTooLarge(f"the value has {len(body)} bytes; {MAX_PAYLOAD} are allowed")
        check_depth(body, "the value")
        if state is PromiseState.REJECTED:
            body = encode_failure(rejection_of(_decoded(body)))
        while True:
            request = self._resolve(tenant, address, state, body, request_key, park_ttl)
            with self._runs.offering() as adopt:
                answer = await self._asking.ask(request._replace(adopt=adopt), self._left)
            if not isinstance(answer, Gone):
                return self._settled(answer, request)

    def _left(self, request: Resolve, answer: Any) -> None:
        """Whoever asked has gone away: what was woken goes on all the same."""
        if isinstance(answer, Settled):
            self._settled(answer, request)

    def _resolve(
        self,
        tenant: str,
        address: Address,
        state: PromiseState,
        body: bytes,
        request_key: str | None,
        park_ttl: float | None,
    ) -> Resolve:
        now = self._asking.clock.now()
        insert: Insert | None = None
        if request_key is not None:
            number = self._asking.draw()
            insert = self._asking.insert(tenant, REQUESTS, request_key, number, keep=_REQUEST_KEPT)
        park = None
        if park_ttl is not None and isinstance(address, ByKey):
            digest = ref_of(tenant, PROMISES, address.key).digest
            park = Park(digest, address.key, now + round(park_ttl * 1000))
        target = self._target(tenant, address)
        return Resolve(target, state, body, now, request_key, insert, park)

    def _settled(self, answer: Any, request: Resolve) -> SettleAnswer:
        used = request.insert is not None
        match answer:
            case Settled(promise, woken):
                if woken is not None:
                    self._runs.woken(woken)
                self._watching.changed(promise.id)
                self._watching.ring()
                return SettleAnswer(promise, False, used, used)
            case AlreadySettled(promise, again, key_new):
                _check_state(promise)
                return SettleAnswer(promise, not again, used, used and key_new)
            case Parked(until, again):
                return SettleAnswer(None, False, used, used and not again, until)
            case KeyExpired():
                raise PromiseOver("the key of the promise has expired", state="expired")
            case RequestKeyReused():
                raise KeyReused(f"the request key {request.settled_by!r} was for another promise")
            case _:
                raise _unknown()

    def _new(self, tenant: str, name: str, timeout: float | None) -> Promise:
        now = self._asking.clock.now()
        due_at = None if timeout is None else now + round(timeout * 1000)
        return Promise(
            self._asking.draw(),
            tenant,
            PromiseKind.PROMISE,
            name,
            PromiseState.PENDING,
            now,
            due_at=due_at,
        )

    def _target(self, tenant: str, address: Address) -> Target:
        match address:
            case ById(text):
                place = promise_place_of(text)
                if place is None or not _is_name(place.name):
                    raise _unknown()
                return Target(tenant, place.id, place.execution, place.name)
            case ByName(execution_id, name):
                execution = execution_number_of(execution_id)
                if execution is None or not _is_name(name):
                    raise _unknown()
                return Target(tenant, None, execution[1], name)
            case ByKey(key):
                return Target(tenant, digest=ref_of(tenant, PROMISES, key).digest)
            case ByToken(token):
                if not is_token(token):
                    raise _unknown()
                return Target(tenant, token=digest_of(token))


def _check_state(promise: Promise) -> None:
    if promise.state in {PromiseState.TIMED_OUT, PromiseState.CANCELLED}:
        raise PromiseOver(state=promise.state.name.lower())


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise InvalidInput(f"the reason of a rejection is not JSON: {error}") from None


def _is_name(name: str) -> bool:
    return 0 < len(name) <= _MAX_NAME and name.isprintable()


def _checked(name: str) -> str:
    if not _is_name(name):
        raise InvalidInput(f"a promise name is 1 to {_MAX_NAME} printable characters")
    return name


def _unknown() -> NotFound:
    """The same for what is not there and for what is another tenant's."""
    return NotFound("there is no such promise")
