"""Async views under an async server: the same situations, without blocking the loop."""

import asyncio
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient, Client, RequestFactory

from oncekey import ConfigurationError
from oncekey.django import IdempotentMixin, idempotent
from oncekey.django.models import IdempotencyKey
from tests.django.project.models import Charge
from tests.django.project.views import created

KEY = {"Idempotency-Key": "k"}


async def post_twice(path: str) -> list[Any]:
    client = AsyncClient(raise_request_exception=False)
    return [await client.post(path, headers=KEY) for _ in range(2)]


@pytest.mark.parametrize("path", ["/awaited/", "/awaited-whole/"])
@pytest.mark.parametrize("database", ["default", "file", "postgres"], indirect=True)
def test_a_retry_is_replayed(database: str, path: str) -> None:
    first, again = async_to_sync(post_twice)(path)

    assert first.status_code == again.status_code == 201
    assert first.content == again.content
    assert again["Idempotent-Replayed"] == "true"
    assert again["X-Operation-Id"] == first["X-Operation-Id"]
    assert Charge.objects.count() == 1


def test_a_view_that_raises_is_run_again(database: str) -> None:
    answers = async_to_sync(post_twice)("/awaited/?then=crash")

    assert [answer.status_code for answer in answers] == [500, 500]
    assert Charge.objects.count() == 2
    assert IdempotencyKey.objects.count() == 0


def test_events_are_kept_where_the_view_says_so(database: str) -> None:
    async def read() -> list[bytes]:
        client = AsyncClient()
        first = await client.post("/awaited-events/", headers=KEY)
        chunks = [chunk async for chunk in first.streaming_content]
        again = await client.post("/awaited-events/", headers=KEY)
        assert again["Idempotent-Replayed"] == "true"
        return [b"".join(chunks), again.content]

    first, again = async_to_sync(read)()

    assert first == again == b"data: 0\n\ndata: 1\n\ndata: 2\n\n"


def test_an_async_view_works_under_a_server_of_threads(database: str) -> None:
    client = Client()

    answers = [client.post("/awaited/", headers=KEY) for _ in range(2)]

    assert answers[1]["Idempotent-Replayed"] == "true"
    assert Charge.objects.count() == 1


def duplicates_of(options: dict[str, Any], count: int) -> list[Any]:
    """`count` requests with one key, all begun before the first is answered."""

    async def send() -> list[Any]:
        begun, finish = asyncio.Event(), asyncio.Event()

        @idempotent(**options)
        async def view(request: Any) -> Any:
            begun.set()
            await finish.wait()
            return created(await Charge.objects.acreate(amount=1))

        async def call() -> Any:
            return await view(RequestFactory().post("/x/", headers=KEY))

        first = asyncio.create_task(call())
        await begun.wait()
        others = [asyncio.create_task(call()) for _ in range(count - 1)]
        if "in_flight" not in options:
            await asyncio.wait(others)
        finish.set()
        return await asyncio.gather(first, *others)

    return async_to_sync(send)()


def test_duplicates_in_flight_are_told_to_wait(database: str) -> None:
    statuses = [answer.status_code for answer in duplicates_of({}, 5)]

    assert statuses == [201, 409, 409, 409, 409]
    assert Charge.objects.count() == 1


@pytest.mark.parametrize(
    "database", ["file", pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True
)
def test_duplicates_in_flight_can_attach(database: str) -> None:
    answers = duplicates_of({"in_flight": "attach"}, 5)

    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    assert Charge.objects.count() == 1


@pytest.mark.parametrize(
    "database", ["file", pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True
)
def test_a_client_that_goes_away_stops_nothing(database: str) -> None:
    async def leave() -> Any:
        begun, finish = asyncio.Event(), asyncio.Event()

        @idempotent(in_flight="attach")
        async def view(request: Any) -> Any:
            begun.set()
            await finish.wait()
            return created(await Charge.objects.acreate(amount=1))

        task = asyncio.create_task(view(RequestFactory().post("/x/", headers=KEY)))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        finish.set()
        return await view(RequestFactory().post("/x/", headers=KEY))

    again = async_to_sync(leave)()

    assert (again.status_code, again["Idempotent-Replayed"]) == (201, "true")
    assert Charge.objects.count() == 1


@pytest.mark.parametrize("database", ["file"], indirect=True)
def test_a_view_that_is_cut_off_counts_as_crashed(database: str) -> None:
    async def cut_off() -> Any:
        begun = False

        @idempotent
        async def view(request: Any) -> Any:
            nonlocal begun
            if begun:
                return created(await Charge.objects.acreate(amount=1))
            begun = True
            raise asyncio.CancelledError

        with pytest.raises(asyncio.CancelledError):
            await view(RequestFactory().post("/x/", headers=KEY))
        return await view(RequestFactory().post("/x/", headers=KEY))

    again = async_to_sync(cut_off)()

    assert again.status_code == 201
    assert IdempotencyKey.objects.get().attempts == 2


def test_async_views_cannot_be_atomic() -> None:
    async def view(request: Any) -> None: ...

    with pytest.raises(ConfigurationError, match="no transactions in async code"):
        idempotent(atomic=True)(view)


@pytest.mark.parametrize("database", ["default"], indirect=True)
def test_the_mixin_takes_async_views_too(database: str) -> None:
    from django.views import View

    class Charges(IdempotentMixin, View):
        async def post(self, request: Any) -> Any:
            return created(await Charge.objects.acreate(amount=1))

    view = async_to_sync(Charges.as_view())

    answers = [view(RequestFactory().post("/x/", headers=KEY)) for _ in range(2)]

    assert answers[0].content == answers[1].content
    assert Charge.objects.count() == 1
