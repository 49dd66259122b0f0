"""The service `Events`: something happened, and whoever waits for it goes on."""

from __future__ import annotations

from oncekey.api.grpc import oncekey_pb2 as pb
from oncekey.api.grpc.door import Call, Door, answered
from oncekey.api.grpc.messages import publish_message
from oncekey.api.grpc.oncekey_pb2_grpc import EventsServicer
from oncekey.api.grpc.requests import json_in
from oncekey.durable.engine import Engine


class Events(EventsServicer):
    def __init__(self, engine: Engine, door: Door) -> None:
        self.door = door
        self._engine = engine

    @answered
    async def Publish(self, request: pb.PublishRequest, call: Call) -> pb.PublishResponse:
        answer = await self._engine.publish(
            call.tenant,
            request.key,
            json_in("data_json", request.data_json),
            headers=dict(request.headers),
            idempotency_key=call.key("idempotency_key", request.idempotency_key),
        )
        return publish_message(answer)
