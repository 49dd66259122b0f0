"""REST framework: who may call is decided first, and answers are kept as they were rendered."""

from base64 import b64encode
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from rest_framework.views import APIView

from oncekey import ConfigurationError
from oncekey.django import IdempotentMixin
from oncekey.django.models import IdempotencyKey
from tests.django.project.models import Charge
from tests.django.project.rest import Sensitive


def basic(name: str) -> str:
    return "Basic " + b64encode(f"{name}:p".encode()).decode()


@pytest.fixture
def ann(database: str) -> Any:
    return get_user_model().objects.create_user("ann", password="p")


def test_a_viewset_makes_one_object_for_one_key(send: Any, ann: Any) -> None:
    first, again = (send("/rest/charges/", "k", Authorization=basic("ann")) for _ in range(2))

    assert first.status_code == again.status_code == 201
    assert first.content == again.content
    assert again["Idempotent-Replayed"] == "true"
    assert again["Content-Type"] == first["Content-Type"] == "application/json"
    assert Charge.objects.count() == 1
    assert IdempotencyKey.objects.get().namespace.endswith(f"user:{ann.pk}")


def test_every_unsafe_action_is_protected(client: Client, ann: Any) -> None:
    made = Charge.objects.create(amount=1)
    path, given = f"/rest/charges/{made.pk}/", {"Authorization": basic("ann")}

    assert client.delete(path, headers=given).status_code == 400
    keyed = {**given, "Idempotency-Key": "k"}
    gone = [client.delete(path, headers=keyed).status_code for _ in range(2)]

    assert gone == [204, 204]
    assert client.get(path, headers=keyed).status_code == 404
    assert client.get("/rest/charges/", headers=keyed).json() == []


def test_whoever_lost_access_gets_no_stored_answer(send: Any, ann: Any) -> None:
    send("/rest/charges/", "k", Authorization=basic("ann"))

    ann.is_active = False
    ann.save()
    refused = send("/rest/charges/", "k", Authorization=basic("ann"))

    assert refused.status_code == 401
    assert "Idempotent-Replayed" not in refused


def test_answers_that_are_not_for_everyone_come_before_the_key(send: Any) -> None:
    assert send("/rest/charges/").status_code == 401
    assert IdempotencyKey.objects.count() == 0


def test_an_invalid_request_is_an_answer_kept(send: Any, ann: Any) -> None:
    first, again = (
        send("/rest/charges/", "k", amount="much", Authorization=basic("ann")) for _ in range(2)
    )

    assert first.status_code == again.status_code == 400
    assert again["Idempotent-Replayed"] == "true"
    assert b"valid integer" in again.content


def test_the_body_may_be_read_before_us_and_after(send: Any) -> None:
    first, again = send("/rest/sensitive/", "k", amount=3), send("/rest/sensitive/", "k", amount=3)

    assert first.status_code == 201
    assert again["Idempotent-Replayed"] == "true"
    assert Charge.objects.get().amount == 3


@pytest.mark.parametrize("then, status", [("busy", 503), ("crash", 500)])
@pytest.mark.parametrize("database", ["default", "file", "postgres"], indirect=True)
def test_an_exact_view_that_fails_takes_its_effect_back(
    database: str, send: Any, then: str, status: int
) -> None:
    assert send(f"/rest/sensitive/?then={then}", "k").status_code == status
    assert Charge.objects.count() == 0
    assert IdempotencyKey.objects.count() == 0


def test_an_exact_view_that_refuses_takes_its_effect_back_too(send: Any) -> None:
    first, again = (send("/rest/sensitive/?then=invalid", "k") for _ in range(2))

    assert first.status_code == again.status_code == 400
    assert again["Idempotent-Replayed"] == "true"
    assert Charge.objects.count() == 0


def test_function_views_are_decorated_inside(send: Any) -> None:
    first, again = send("/rest/function/", "k"), send("/rest/function/", "k")

    assert first.status_code == 201
    assert first.content == again.content
    assert again["Idempotent-Replayed"] == "true"


@pytest.mark.parametrize("database", ["default"], indirect=True)
def test_an_exception_is_shown_to_the_handler_once(
    database: str, send: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Exception] = []
    inner = Sensitive.get_exception_handler

    def handler_of(self: Any) -> Any:
        handle = inner(self)
        return lambda error, context: shown.append(error) or handle(error, context)

    monkeypatch.setattr(Sensitive, "get_exception_handler", handler_of)
    send("/rest/sensitive/?then=crash", "k")

    assert [type(error) for error in shown] == [RuntimeError]


def test_a_mixin_in_the_wrong_place_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="must come before"):
        type("Late", (APIView, IdempotentMixin), {})


def test_a_mistake_in_an_option_is_told_where_it_is_written() -> None:
    with pytest.raises(ConfigurationError, match="takeover"):
        type("Wrong", (IdempotentMixin, APIView), {"idempotency": {"takeover": "maybe"}})
