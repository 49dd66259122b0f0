"""The gRPC server: it listens, and stops in good order. Needs the extra `grpc`."""

from __future__ import annotations

from grpc import aio

from oncekey.api.grpc.door import Door
from oncekey.api.grpc.events import Events
from oncekey.api.grpc.oncekey_pb2_grpc import (
    add_EventsServicer_to_server,
    add_PromisesServicer_to_server,
    add_WorkflowsServicer_to_server,
)
from oncekey.api.grpc.promises import Promises
from oncekey.api.grpc.reading import Reading
from oncekey.api.grpc.workflows import Workflows
from oncekey.core.callers import Callers
from oncekey.core.errors import ConfigurationError
from oncekey.core.ledger import Ledger
from oncekey.durable.engine import MAX_PAYLOAD, Engine

# Above what a value may be, so that most of what is too large is told so by its rule.
MAX_REQUEST_BYTES = 2 * MAX_PAYLOAD
MAX_CALLS = 10_000
# Each is a file of this process, whether anything is ever asked on it or not.
MAX_CONNECTIONS = 4096
IDLE = 300.0
_GREETING = 10.0
GRACE = 10.0


class GrpcServer:
    """A server that is listening on `port`."""

    def __init__(self, server: aio.Server, door: Door, port: int) -> None:
        self.port = port
        self._server = server
        self._door = door

    async def stop(self, grace: float = GRACE) -> None:
        """Take no more calls, answer who waits as things are, and let the rest end within `grace`
        seconds."""
        self._door.patience.end()
        await self._server.stop(grace)


async def serve_grpc(
    engine: Engine,
    callers: Callers,
    ledger: Ledger,
    host: str,
    port: int,
    *,
    shares_port: bool = False,
    max_calls: int = MAX_CALLS,
    max_connections: int = MAX_CONNECTIONS,
    idle: float = IDLE,
) -> GrpcServer:
    """Listen on `port`, or on any that is free for 0. `shares_port`: with other workers.

    Calls beyond `max_calls` at a time are refused, connections beyond `max_connections` ended, and
    so is one that has had no call for `idle` seconds; clients connect again by themselves. Raises
    `ConfigurationError` when it cannot listen.
    """
    options = [
        ("grpc.max_receive_message_length", MAX_REQUEST_BYTES),
        ("grpc.so_reuseport", int(shares_port)),
        ("grpc.max_allowed_incoming_connections", max_connections),
        ("grpc.max_connection_idle_ms", round(idle * 1000)),
        ("grpc.server_handshake_timeout_ms", round(_GREETING * 1000)),
    ]
    server = aio.server(
        interceptors=[Reading()], options=options, maximum_concurrent_rpcs=max_calls
    )
    door = Door(callers)
    add_WorkflowsServicer_to_server(Workflows(engine, door), server)
    add_PromisesServicer_to_server(Promises(engine, ledger, door), server)
    add_EventsServicer_to_server(Events(engine, door), server)
    bound = _listen(server, host, port)
    await server.start()
    return GrpcServer(server, door, bound)


def _listen(server: aio.Server, host: str, port: int) -> int:
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        return server.add_insecure_port(address)
    except RuntimeError:
        raise ConfigurationError(
            f"cannot listen on {address} for gRPC; choose another [server] grpc_port, or 0 for any"
        ) from None
