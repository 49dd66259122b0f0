"""A promise made by a caller: each time it is asked for, or once for an idempotency key."""

from __future__ import annotations

from typing import Any

from google.protobuf.json_format import MessageToDict, ParseDict

from oncekey.api.grpc.door import Call
from oncekey.api.grpc.messages import promise_message
from oncekey.api.grpc.oncekey_pb2 import CreatePromiseRequest, CreatePromiseResponse
from oncekey.api.grpc.requests import seconds_in
from oncekey.core.errors import InvalidInput, TerminalError
from oncekey.core.ledger import Ledger
from oncekey.durable.engine import Engine

_ENDPOINT = "oncekey.v1.Promises/Create"


class Creating:
    def __init__(self, engine: Engine, request: CreatePromiseRequest, call: Call) -> None:
        self._engine = engine
        self._request = request
        self._call = call
        self._created: CreatePromiseResponse | None = None

    async def create(self) -> CreatePromiseResponse:
        request = self._request
        answer = await self._engine.create_promise(
            self._call.tenant,
            request.name,
            key=request.key or None,
            key_ttl=seconds_in("key_ttl", request),
            timeout=seconds_in("timeout", request),
            token=request.token,
        )
        return CreatePromiseResponse(promise=promise_message(answer.promise), token=answer.token)

    async def create_once(self, ledger: Ledger, key: str) -> CreatePromiseResponse:
        if self._request.token:
            raise InvalidInput(
                "a token is told once, and the answer to a call with an idempotency-key is kept; "
                "leave out the key, or the token"
            )
        try:
            kept = await ledger.aonce(
                key,
                self._create,
                namespace=self._call.caller.namespace,
                endpoint=_ENDPOINT,
                fingerprint=self._request.SerializeToString(deterministic=True),
            )
        except _NotMade as refused:
            raise refused.why from None
        return self._created or ParseDict(kept, CreatePromiseResponse(idempotency_replayed=True))

    async def _create(self) -> dict[str, Any]:
        try:
            self._created = await self.create()
        except TerminalError as error:
            raise _NotMade(error) from error
        return MessageToDict(self._created, preserving_proto_field_name=True)


class _NotMade(Exception):
    """Nothing was made, so nothing is kept: the key is free for another attempt."""

    def __init__(self, why: TerminalError) -> None:
        self.why = why
