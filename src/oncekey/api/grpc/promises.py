"""The service `Promises`: made, seen and settled from outside."""

from __future__ import annotations

from typing import Literal

from oncekey.api.grpc import oncekey_pb2 as pb
from oncekey.api.grpc.creating import Creating
from oncekey.api.grpc.deadline import bounded
from oncekey.api.grpc.door import Call, Door, answered
from oncekey.api.grpc.messages import promise_message, settle_message
from oncekey.api.grpc.oncekey_pb2_grpc import PromisesServicer
from oncekey.api.grpc.requests import address_in, json_in, seconds_in, wait_in
from oncekey.core.errors import InvalidInput
from oncekey.core.execution import Promise, PromiseState
from oncekey.core.ledger import Ledger
from oncekey.durable.address import Address, ByName, ByToken
from oncekey.durable.engine import PARK_TTL, Engine

Settling = Literal[PromiseState.RESOLVED, PromiseState.REJECTED]


class Promises(PromisesServicer):
    def __init__(self, engine: Engine, ledger: Ledger, door: Door) -> None:
        self.door = door
        self._engine = engine
        self._ledger = ledger

    @answered
    async def Create(
        self, request: pb.CreatePromiseRequest, call: Call
    ) -> pb.CreatePromiseResponse:
        creating = Creating(self._engine, request, call)
        if call.idempotency_key is None:
            return await creating.create()
        return await creating.create_once(self._ledger, call.idempotency_key)

    @answered
    async def Get(self, request: pb.GetPromiseRequest, call: Call) -> pb.Promise:
        address, asked = address_in(request), wait_in(request)
        promise: Promise | None = None
        if asked:
            seconds = bounded(asked, call.seconds_left)
            waiting = self._engine.wait_promise(call.tenant, address, seconds)
            promise = await self.door.patience.wait(waiting)
        if promise is None:
            promise = await self._engine.promise(call.tenant, address)
        return promise_message(promise)

    @answered
    async def Resolve(self, request: pb.ResolveRequest, call: Call) -> pb.SettleResponse:
        body = json_in("value_json", request.value_json)
        return await self._settle_addressed(PromiseState.RESOLVED, body, request, call)

    @answered
    async def Reject(self, request: pb.RejectRequest, call: Call) -> pb.SettleResponse:
        body = json_in("error_json", request.error_json)
        return await self._settle_addressed(PromiseState.REJECTED, body, request, call)

    @answered
    async def Complete(self, request: pb.CompleteRequest, call: Call) -> pb.SettleResponse:
        return await self._complete(ByToken(request.token), request, call)

    @answered
    async def CompleteByName(
        self, request: pb.CompleteByNameRequest, call: Call
    ) -> pb.SettleResponse:
        return await self._complete(ByName(request.workflow_id, request.name), request, call)

    async def _settle_addressed(
        self,
        state: Settling,
        body: bytes,
        request: pb.ResolveRequest | pb.RejectRequest,
        call: Call,
    ) -> pb.SettleResponse:
        park_ttl = seconds_in("park_ttl", request)
        answer = await self._engine.settle(
            call.tenant,
            address_in(request),
            state,
            body,
            request_key=call.key("request_key", request.request_key),
            park=request.park,
            park_ttl=PARK_TTL if park_ttl is None else park_ttl,
        )
        return settle_message(answer)

    async def _complete(
        self, address: Address, request: pb.CompleteRequest | pb.CompleteByNameRequest, call: Call
    ) -> pb.SettleResponse:
        state, body = _outcome_in(request)
        key = call.key("request_id", request.request_id)
        answer = await self._engine.settle(call.tenant, address, state, body, request_key=key)
        return settle_message(answer)


def _outcome_in(
    request: pb.CompleteRequest | pb.CompleteByNameRequest,
) -> tuple[Settling, bytes]:
    match request.WhichOneof("outcome"):
        case "result_json":
            return PromiseState.RESOLVED, json_in("result_json", request.result_json)
        case "error_json":
            return PromiseState.REJECTED, json_in("error_json", request.error_json)
        case _:
            raise InvalidInput("the request has no outcome; set result_json or error_json")
