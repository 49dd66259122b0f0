"""The API behind uvicorn on a real socket: waiting, leaving, stopping, and starting again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import uvicorn

from tests.fixtures.api_site import ApiSite, api_site, turn

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def served(site: ApiSite) -> AsyncIterator[str]:
    config = uvicorn.Config(site.api, port=0, log_level="error", lifespan="on")
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve())
    while not server.started:
        await turn()
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    site.api.patience.end()
    server.should_exit = True
    await running


@asynccontextmanager
async def caller(url: str, site: ApiSite) -> AsyncIterator[httpx.AsyncClient]:
    _, secret = await site.callers.create("acme")
    async with httpx.AsyncClient(
        base_url=f"{url}/api/tenants/acme/", headers={"x-api-key": secret}, timeout=60
    ) as client:
        yield client


async def test_a_workflow_is_started_resolved_and_waited_for(site: ApiSite) -> None:
    async with served(site) as url, caller(url, site) as client:
        body = {"input": 7}
        headers = {"idempotency-key": "order-7"}
        started = await client.post("workflows/order/start", json=body, headers=headers)
        waiting = asyncio.create_task(client.get(f"workflows/{started.json()['id']}?wait=60s"))
        early = {"value": "paid", "park": True}
        settled = await client.post("promises/key:stripe:ch_7/resolve", json=early)
        ended = await waiting

    assert started.status_code == 201
    assert settled.status_code in {200, 202}
    assert (ended.json()["status"], ended.json()["result"]) == ("succeeded", "paid")


async def test_fifty_connections_resolve_one_promise(site: ApiSite) -> None:
    async with served(site) as url, caller(url, site) as client:
        await client.post("promises", json={"name": "p", "key": "a/b"})

        async def resolve(number: int) -> httpx.Response:
            headers = {"idempotency-key": f"evt_{number}"}
            return await client.post(
                "promises/key:a%2Fb/resolve", json={"value": number}, headers=headers
            )

        answers = [each.json() for each in await asyncio.gather(*map(resolve, range(50)))]

    winners = [each for each in answers if not each["already_resolved"]]
    assert len(winners) == 1
    assert {each["promise"]["value"] for each in answers} == {winners[0]["promise"]["value"]}


async def test_nobody_is_kept_waiting_by_a_server_that_stops(site: ApiSite) -> None:
    async with served(site) as url, caller(url, site) as client:
        made = (await client.post("promises", json={"name": "p"})).json()
        waiting = asyncio.create_task(client.get(f"promises/id:{made['id']}?wait=60s"))
        while not site.api.patience.waiting:
            await turn()
        site.api.patience.end()
        assert (await waiting).json()["state"] == "pending"


async def test_nobody_waits_for_a_client_that_left(site: ApiSite) -> None:
    async with served(site) as url, caller(url, site) as client:
        made = (await client.post("promises", json={"name": "p"})).json()
        waiting = asyncio.create_task(client.get(f"promises/id:{made['id']}?wait=60s"))
        while not site.api.patience.waiting:
            await turn()
        waiting.cancel()
        while site.api.patience.waiting:
            await turn()


async def test_after_a_restart_everything_is_as_it_was(store_url: str) -> None:
    if store_url == "memory://":
        pytest.skip("memory does not outlive its process")
    async with api_site(store_url) as before:
        client = await before.client("acme")
        started = await client.start("order", 7, key="order-7")
        await client.promise_of(started["id"], "payment")
        made = await client.ask("promises", {"name": "p", "key": "k"}, key="make-1")
        parked = {"value": 9, "park": True}
        await client.ask("promises/key:stripe:ch_8/resolve", parked, key="evt_0")
    async with api_site(store_url) as after:
        again = type(client)(after.api, "acme", client.secret)
        same = await again.ask("workflows/order/start", {"input": 7}, key="order-7")
        assert (same.status_code, same.json()["id"]) == (200, started["id"])
        kept = await again.ask("promises", {"name": "p", "key": "k"}, key="make-1")
        assert kept.content == made.content
        assert (await again.see("promises/key:k")).json() == made.json()
        body = {"value": {"paid": True}}
        await again.ask("promises/key:stripe:ch_7/resolve", body, key="evt_1")
        assert (await again.end_of(started["id"]))["result"] == {"paid": True}
        later = await again.start("order", 8)
        assert (await again.end_of(later["id"]))["result"] == 9
