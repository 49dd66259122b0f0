"""Requests read from the wire: one that cannot be read is refused like any other that is wrong."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from google.protobuf.message import DecodeError
from grpc import HandlerCallDetails, RpcMethodHandler, unary_unary_rpc_method_handler
from grpc.aio import ServerInterceptor


class Reading(ServerInterceptor):
    """Hands what could not be read to the door, which knows who may be told what."""

    async def intercept_service(
        self,
        continuation: Callable[[HandlerCallDetails], Awaitable[RpcMethodHandler[Any, Any] | None]],
        handler_call_details: HandlerCallDetails,
    ) -> RpcMethodHandler[Any, Any] | None:
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        assert handler.unary_unary is not None
        assert handler.request_deserializer is not None
        return unary_unary_rpc_method_handler(
            handler.unary_unary,
            request_deserializer=_lenient(handler.request_deserializer),
            response_serializer=handler.response_serializer,
        )


def _lenient(read: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    def read_or_tell(content: bytes) -> Any:
        try:
            return read(content)
        except DecodeError as error:
            return error

    return read_or_tell
