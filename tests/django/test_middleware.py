"""The middleware: every unsafe request with a key, and views with a rule of their own keep it."""

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.test import AsyncClient, override_settings

from oncekey.django.models import IdempotencyKey
from tests.django.project.models import Charge


@pytest.fixture(autouse=True)
def middleware(database: str) -> Any:
    with override_settings(
        MIDDLEWARE=[*settings.MIDDLEWARE, "oncekey.django.IdempotencyMiddleware"]
    ):
        yield


def test_a_view_that_knows_nothing_of_it_is_protected(send: Any) -> None:
    first, again = send("/bare/", "k"), send("/bare/", "k")

    assert first.content == again.content
    assert again["Idempotent-Replayed"] == "true"
    assert IdempotencyKey.objects.get().endpoint == "POST /bare/"
    assert Charge.objects.count() == 1


def test_a_path_that_leads_nowhere_is_answered_as_ever(send: Any) -> None:
    assert [send("/nowhere/", "k").status_code for _ in range(2)] == [404, 404]


@pytest.mark.parametrize("path", ["/required/", "/methods/", "/rest/sensitive/", "/whole/"])
@pytest.mark.parametrize("database", ["default", "file"], indirect=True)
def test_views_with_a_rule_of_their_own_are_protected_once(
    database: str, send: Any, path: str
) -> None:
    first, again = send(path, "k"), send(path, "k")

    assert first.status_code == again.status_code == 201
    assert again["Idempotent-Replayed"] == "true"
    assert Charge.objects.count() == 1


def test_the_rule_of_a_view_holds(send: Any) -> None:
    assert send("/required/").status_code == 400


def test_under_an_async_server(database: str) -> None:
    async def send() -> list[Any]:
        client = AsyncClient()
        headers = {"Idempotency-Key": "k"}
        return [await client.post("/bare/", headers=headers) for _ in range(2)]

    answers = async_to_sync(send)()

    assert answers[1]["Idempotent-Replayed"] == "true"
    assert Charge.objects.count() == 1
