"""Long polls over gRPC, crowds, and a server that stops in good order."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from grpc import StatusCode, aio

from oncekey.api.grpc import oncekey_pb2 as pb
from oncekey.api.grpc.server import serve_grpc
from oncekey.core.errors import ConfigurationError
from tests.fixtures.api_site import turn
from tests.fixtures.grpc_site import Client, GrpcSite, Refused, dump, grpc_site, load

pytestmark = pytest.mark.anyio

MINUTE = Duration(seconds=60)


async def made(client: Client, **fields: Any) -> str:
    request = pb.CreatePromiseRequest(**{"name": "payment", **fields})
    created: str = (await client.ask(client.promises.Create, request)).promise.id
    return created


def resolving(client: Client, promise: str, number: int) -> Any:
    request = pb.ResolveRequest(id=promise, value_json=dump(number), request_key=f"evt_{number}")
    return client.ask(client.promises.Resolve, request)


def polling(client: Client, promise: str, **options: Any) -> asyncio.Task[Any]:
    request = pb.GetPromiseRequest(id=promise, wait=MINUTE)
    return asyncio.ensure_future(client.ask(client.promises.Get, request, **options))


async def test_one_of_fifty_wins_and_all_see_it(site: GrpcSite, acme: Client) -> None:
    """Each has a connection of its own."""
    promise = await made(acme)
    channels = [
        aio.insecure_channel(
            f"127.0.0.1:{site.server.port}", options=[("grpc.use_local_subchannel_pool", 1)]
        )
        for _ in range(50)
    ]
    clients = [Client(channel, acme.secret) for channel in channels]
    answers = await asyncio.gather(
        *(resolving(client, promise, number) for number, client in enumerate(clients))
    )
    winners = [answer for answer in answers if not answer.already_resolved]
    assert len(winners) == 1
    assert {answer.resolved_by for answer in answers} == {winners[0].resolved_by}
    assert {answer.promise.value_json for answer in answers} == {winners[0].promise.value_json}
    for channel in channels:
        await channel.close()


async def test_fifty_starts_with_one_key_are_one_workflow(acme: Client) -> None:
    request = pb.StartRequest(name="approval", input_json=b'"x"', key="order:7")
    answers = await asyncio.gather(*(acme.ask(acme.workflows.Start, request) for _ in range(50)))
    assert sum(answer.created for answer in answers) == 1
    assert len({answer.execution.id for answer in answers}) == 1


async def test_who_waits_hears_of_the_resolution(acme: Client) -> None:
    promise = await made(acme)
    polls = [polling(acme, promise) for _ in range(10)]
    await resolving(acme, promise, 7)
    assert {load((await poll).value_json) for poll in polls} == {7}


async def test_who_waits_hears_of_the_end_of_a_workflow(acme: Client) -> None:
    started = await acme.ask(
        acme.workflows.Start, pb.StartRequest(name="order", input_json=b"7", key="order:7")
    )
    request = pb.GetExecutionRequest(id=started.execution.id, wait=MINUTE)
    poll = asyncio.ensure_future(acme.ask(acme.workflows.Get, request))
    resolve = pb.ResolveRequest(key="stripe:ch_7", value_json=b'"paid"', park=True)
    await acme.ask(acme.promises.Resolve, resolve)
    assert load((await poll).result_json) == "paid"


async def test_a_wait_ends_with_things_as_they_are(acme: Client) -> None:
    promise = await made(acme)
    request = pb.GetPromiseRequest(id=promise, wait=Duration(nanos=20_000_000))
    assert (await acme.ask(acme.promises.Get, request)).state == "pending"


async def test_a_wait_is_answered_before_the_deadline_of_the_call() -> None:
    async with grpc_site("memory://") as site:
        acme = await site.client("acme")
        assert (await polling(acme, await made(acme), timeout=3.0)).state == "pending"


async def test_who_gives_up_is_waited_for_no_longer(site: GrpcSite, acme: Client) -> None:
    promise = await made(acme)
    poll = polling(acme, promise)
    await site.until_waiting(1)
    poll.cancel()
    while site.server._door.patience.waiting:
        await turn()


async def test_a_server_that_stops_answers_who_waits() -> None:
    async with grpc_site("memory://") as site:
        acme = await site.client("acme")
        polls = [polling(acme, await made(acme)) for _ in range(3)]
        await site.until_waiting(3)
        await site.server.stop(30)
        assert [(await poll).state for poll in polls] == ["pending"] * 3
        with pytest.raises(Refused) as refused:
            await made(acme)
        assert refused.value.status is StatusCode.UNAVAILABLE


async def test_calls_beyond_the_bound_are_refused() -> None:
    async with grpc_site("memory://", max_calls=2) as site:
        acme = await site.client("acme")
        promise = (await site.app.engine.create_promise("acme", "payment")).promise.public_id
        polls = [polling(acme, promise) for _ in range(2)]
        await site.until_waiting(2)
        with pytest.raises(Refused) as refused:
            await made(acme)
        assert refused.value.status is StatusCode.RESOURCE_EXHAUSTED
        await site.server.stop(30)
        assert [(await poll).state for poll in polls] == ["pending", "pending"]


async def test_a_port_that_is_taken_is_said_so(site: GrpcSite) -> None:
    engine, port = site.app.engine, site.server.port
    with pytest.raises(ConfigurationError, match=f"cannot listen on 127.0.0.1:{port} for gRPC"):
        await serve_grpc(engine, site.callers, site.ledger, "127.0.0.1", port)


async def test_workers_may_share_a_port() -> None:
    async with grpc_site("memory://", shares_port=True) as site:
        second = await serve_grpc(
            site.app.engine,
            site.callers,
            site.ledger,
            "127.0.0.1",
            site.server.port,
            shares_port=True,
        )
        assert second.port == site.server.port
        await second.stop()


async def test_a_store_that_is_gone_is_told_as_such() -> None:
    async with grpc_site("memory://") as site:
        acme = await site.client("acme")
        await made(acme)
        await site.ledger.aclose()
        with pytest.raises(Refused) as refused:
            await made(acme)
    assert refused.value.status is StatusCode.UNAVAILABLE
    assert refused.value.code in {"ledger-closed", "ledger-unavailable"}


async def test_a_fault_is_told_without_what_is_inside(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("password of the database")

    async with grpc_site("memory://") as site:
        acme = await site.client("acme")
        monkeypatch.setattr("oncekey.api.grpc.creating.promise_message", broken)
        with pytest.raises(Refused) as refused:
            await made(acme)
    assert refused.value.status is StatusCode.INTERNAL
    assert refused.value.code == "internal-error"
    assert "password" not in str(refused.value)
    assert "password of the database" in caplog.text


# -- connections that nothing is asked on --------------------------------------------------

# What a client of HTTP/2 begins with: its greeting, and settings that say nothing.
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


async def greeted(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(GREETING)
    return reader, writer


async def test_connections_beyond_the_bound_are_ended() -> None:
    async with grpc_site("memory://", max_connections=2) as site:
        held = [await greeted(site.server.port) for _ in range(2)]
        assert all([await reader.read(1) for reader, _ in held])
        reader, writer = await greeted(site.server.port)
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        for each in (writer, *(writer for _, writer in held)):
            each.close()


async def test_a_connection_that_rests_is_ended() -> None:
    async with grpc_site("memory://", idle=0.1) as site:
        reader, writer = await greeted(site.server.port)
        # Until its end.
        assert await reader.read()
        writer.close()
        # Whoever comes back is served.
        acme = await site.client("acme")
        assert await made(acme)
