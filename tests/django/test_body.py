"""Bodies are read once for comparison, and the view finds them unread."""

import io
from typing import Any

import pytest
from django.test import Client, RequestFactory, override_settings

from oncekey import ConfigurationError
from oncekey.django import idempotent
from tests.django.project.models import Charge
from tests.django.project.views import bare

pytestmark = pytest.mark.parametrize("database", ["default"], indirect=True)
KEY = {"Idempotency-Key": "k"}


def send_file(client: Client, content: bytes, note: str = "n") -> Any:
    file = io.BytesIO(content)
    file.name = "a.bin"
    return client.post("/upload/", {"note": note, "file": file}, headers=KEY)


@pytest.mark.parametrize("size", [10, 5 << 20], ids=["small", "spooled"])
def test_an_upload_is_compared_and_handed_on(database: str, client: Client, size: int) -> None:
    first = send_file(client, b"x" * size)
    again = send_file(client, b"x" * size)
    other = send_file(client, b"y" * size)

    assert first.json() == {"size": size, "note": "n"}
    assert again["Idempotent-Replayed"] == "true"
    assert other.status_code == 422
    assert Charge.objects.count() == 1


def test_a_form_that_was_parsed_before_is_compared_by_its_fields(database: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.cookies["csrftoken"] = token = "a" * 32
    form = {"csrfmiddlewaretoken": token, "amount": "3"}

    first = client.post("/checked-form/", form, headers=KEY)
    again = client.post("/checked-form/", form, headers=KEY)
    other = client.post("/checked-form/", {**form, "amount": "4"}, headers=KEY)

    assert (first.status_code, first.content) == (201, b"3")
    assert again["Idempotent-Replayed"] == "true"
    assert other.status_code == 422


def test_forged_forms_are_refused_before_the_key_is_looked_at(database: str) -> None:
    client = Client(enforce_csrf_checks=True)

    assert client.post("/checked-form/", {"amount": "3"}, headers=KEY).status_code == 403
    assert Charge.objects.count() == 0


def test_a_body_that_somebody_took_away_is_not_taken_for_an_empty_one(database: str) -> None:
    request = RequestFactory().post("/x/", {"amount": 1}, "application/json", headers=KEY)
    request.read()

    with pytest.raises(ConfigurationError, match="read before its view was called"):
        idempotent(bare)(request)


def test_a_body_that_was_read_by_its_name_is_compared(database: str) -> None:
    statuses = []
    for amount in (1, 1, 2):
        request = RequestFactory().post("/x/", {"amount": amount}, "application/json", headers=KEY)
        assert request.body
        statuses.append(idempotent(bare)(request).status_code)

    assert statuses == [201, 201, 422]


@override_settings(IDEMPOTENCY_MAX_REQUEST_BODY=10)
def test_a_body_over_the_limit_is_refused(database: str, client: Client) -> None:
    response = client.post("/plain/", "x" * 11, "text/plain", headers=KEY)

    assert response.status_code == 413
    assert b"request-too-large" in response.content


@override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=10)
def test_limits_of_django_hold_where_it_reads(database: str, client: Client) -> None:
    answer = client.post("/plain/", {"amount": 123456}, "application/json", headers=KEY)

    assert answer.status_code == 400
    assert Charge.objects.count() == 0
