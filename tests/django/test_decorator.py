"""A decorated view, row by row of the table of situations."""

import json
from typing import Any

import pytest
from django.test import Client

from oncekey import ConfigurationError
from oncekey.django import idempotent
from tests.django.project.models import Charge


def problem_in(response: Any) -> str:
    assert response["Content-Type"] == "application/problem+json"
    document = json.loads(response.content)
    assert document["status"] == response.status_code
    return document["type"].rpartition("/")[2]


def test_a_request_without_a_key_is_untouched(send: Any) -> None:
    answers = [send("/plain/"), send("/plain/")]

    assert [answer.status_code for answer in answers] == [201, 201]
    assert "X-Operation-Id" not in answers[0]
    assert Charge.objects.count() == 2


def test_a_retry_gets_the_first_answer_and_no_second_charge(send: Any) -> None:
    first = send("/plain/", "k", amount=5, X_Request_Id="req-1")
    again = send("/plain/", "k", amount=5, X_Request_Id="req-2")

    assert Charge.objects.count() == 1
    assert (
        (again.status_code, again.content)
        == (first.status_code, first.content)
        == (
            201,
            first.content,
        )
    )
    assert again["X-Charge"] == "made"
    assert again["Content-Type"] == "application/json"
    assert again["Idempotent-Replayed"] == "true"
    assert again["Original-Request-Id"] == "req-1"
    assert again["X-Operation-Id"] == first["X-Operation-Id"]
    assert again["Idempotency-Expires"]
    assert "Idempotent-Replayed" not in first


def test_cookies_go_with_the_first_answer_only(send: Any) -> None:
    first, again = send("/plain/", "k"), send("/plain/", "k")

    assert first.cookies["seen"].value == "yes"
    assert "seen" not in again.cookies


def test_json_is_compared_by_value(client: Client) -> None:
    bodies = ['{"amount": 2, "to": "x"}', '{"to":"x","amount":2.0}']
    answers = [
        client.post("/plain/", body, "application/json", headers={"Idempotency-Key": "k"})
        for body in bodies
    ]

    assert answers[1]["Idempotent-Replayed"] == "true"


def test_another_body_under_the_same_key_is_refused(send: Any) -> None:
    send("/plain/", "k", amount=1)

    refused = send("/plain/", "k", amount=2)

    assert refused.status_code == 422
    assert problem_in(refused) == "idempotency-key-reused"
    assert Charge.objects.count() == 1


def test_another_query_under_the_same_key_is_refused(send: Any) -> None:
    send("/plain/", "k")

    assert send("/plain/?express=1", "k").status_code == 422


def test_another_path_of_the_same_route_is_refused(send: Any) -> None:
    send("/answers/200/", "k")

    assert send("/answers/201/", "k").status_code == 422


def test_the_same_key_on_another_route_is_another_key(send: Any) -> None:
    send("/plain/", "k")

    assert send("/required/", "k").status_code == 201
    assert Charge.objects.count() == 2


def test_quoted_and_plain_are_the_same_key(send: Any) -> None:
    send("/plain/", '"k"')

    assert send("/plain/", "k")["Idempotent-Replayed"] == "true"


def test_a_missing_key_is_refused_where_one_is_required(send: Any) -> None:
    refused = send("/required/")

    assert refused.status_code == 400
    assert problem_in(refused) == "idempotency-key-missing"


@pytest.mark.parametrize("database", ["default"], indirect=True)
@pytest.mark.parametrize("key", ["", "a b", "t-x", "a,b", '"open', "x" * 256])
def test_a_malformed_key_is_refused(database: str, send: Any, key: str) -> None:
    refused = send("/plain/", key)

    assert refused.status_code == 400
    assert problem_in(refused) == "idempotency-key-invalid"
    assert Charge.objects.count() == 0


@pytest.mark.parametrize("database", ["default"], indirect=True)
@pytest.mark.parametrize("method", ["post", "put"])
def test_methods_of_classes_can_be_decorated(database: str, client: Client, method: str) -> None:
    call = getattr(client, method)
    given = {"data": "{}", "content_type": "application/json"}

    answers = [call("/methods/", **given, headers={"Idempotency-Key": "k"}) for _ in range(2)]

    assert call("/methods/", **given).status_code == 400
    assert [answer.status_code for answer in answers] == [201, 201]
    assert Charge.objects.count() == 1


@pytest.mark.parametrize("database", ["default"], indirect=True)
def test_whole_classes_can_be_decorated(database: str, send: Any) -> None:
    assert send("/whole/", "k").content == send("/whole/", "k").content
    assert Charge.objects.count() == 1


@pytest.mark.parametrize("database", ["default"], indirect=True)
def test_safe_methods_are_untouched(database: str, client: Client) -> None:
    response = client.get("/methods/", headers={"Idempotency-Key": "k"})

    assert response.content == b"got"
    assert "X-Operation-Id" not in response


def test_a_mistake_in_an_option_is_told_where_it_is_written() -> None:
    with pytest.raises(ConfigurationError, match="in_flight"):
        idempotent(in_flight="maybe")
    with pytest.raises(ConfigurationError, match="a route takes"):
        idempotent(requird=True)


def test_only_views_can_be_called() -> None:
    with pytest.raises(ConfigurationError, match="for views"):
        idempotent(lambda number: number)(3)


def test_names_and_marks_of_the_view_stay() -> None:
    def view(request: Any) -> None:
        """What it does."""

    view.csrf_exempt = True  # type: ignore[attr-defined]
    decorated: Any = idempotent(view)

    assert (decorated.__name__, decorated.__doc__) == ("view", "What it does.")
    assert decorated.csrf_exempt
