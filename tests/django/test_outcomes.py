"""Which answers are kept, and what becomes of those that are not."""

from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client, RequestFactory, override_settings

from oncekey.django import idempotent
from oncekey.django.models import IdempotencyKey
from tests.django.project.models import Charge

in_memory = pytest.mark.parametrize("database", ["default"], indirect=True)


@pytest.mark.parametrize("status", [200, 204, 302, 400, 404, 410, 422])
@in_memory
def test_these_are_kept(database: str, send: Any, status: int) -> None:
    first, again = (send(f"/answers/{status}/", "k") for _ in range(2))

    assert again["Idempotent-Replayed"] == "true"
    assert (again.status_code, again.content) == (status, first.content)
    assert Charge.objects.count() == 1


@pytest.mark.parametrize("status", [401, 403, 408, 409, 425, 429, 500, 503])
@in_memory
def test_these_are_released_and_run_again(database: str, send: Any, status: int) -> None:
    first, again = (send(f"/answers/{status}/", "k") for _ in range(2))

    assert first.status_code == again.status_code == status
    assert "Idempotent-Replayed" not in again
    assert Charge.objects.count() == 2


@override_settings(IDEMPOTENCY_STORE_SERVER_ERRORS=True)
def test_server_errors_are_kept_where_the_project_says_so(send: Any) -> None:
    send("/answers/500/", "k")

    assert send("/answers/500/", "k")["Idempotent-Replayed"] == "true"


def test_a_view_that_raises_is_run_again(send: Any) -> None:
    assert [send("/raises/crash/", "k").status_code for _ in range(2)] == [500, 500]
    assert Charge.objects.count() == 2


def test_an_exception_that_django_answers_with_404_is_kept(send: Any) -> None:
    first, again = send("/raises/missing/", "k"), send("/raises/missing/", "k")

    assert first.status_code == again.status_code == 404
    assert again["Idempotent-Replayed"] == "true"
    assert Charge.objects.count() == 1


@in_memory
def test_a_caller_that_may_not_can_try_again(database: str, send: Any) -> None:
    assert [send("/raises/forbidden/", "k").status_code for _ in range(2)] == [403, 403]
    assert Charge.objects.count() == 2


def test_a_terminal_error_is_the_answer_for_good(send: Any) -> None:
    first, again = send("/raises/terminal/", "k"), send("/raises/terminal/", "k")

    assert first.status_code == again.status_code == 402
    assert b"the card is stolen" in first.content
    assert first.content == again.content
    assert Charge.objects.count() == 1


@in_memory
def test_templates_are_rendered_before_they_are_kept(database: str, send: Any) -> None:
    first, again = send("/template/", "k", amount=4), send("/template/", "k", amount=4)

    assert first.content == again.content == b"<p>Charge 4</p>\n"
    assert again["Idempotent-Replayed"] == "true"


@pytest.mark.parametrize("path", ["/stream/", "/file/", "/large/"])
@in_memory
def test_streams_files_and_large_answers_pass_through_unkept(
    database: str, send: Any, path: str
) -> None:
    first = send(path, "k")
    content = first.getvalue()
    again = send(path, "k")

    assert first["Idempotency-Stored"] == "false"
    assert content
    assert again.status_code == 409
    assert b"outcome-not-kept" in again.content
    assert Charge.objects.count() == 1


def test_events_are_kept_where_the_view_says_so(send: Any) -> None:
    first = send("/events/", "k")
    content = first.getvalue()
    again = send("/events/", "k")

    assert content == b"data: 0\n\ndata: 1\n\ndata: 2\n\n"
    assert "Idempotency-Stored" not in first
    assert again["Idempotent-Replayed"] == "true"
    assert again.content == content
    assert Charge.objects.count() == 1


@in_memory
def test_events_are_kept_though_nobody_read_them_to_the_end(database: str, send: Any) -> None:
    cut = send("/events/", "k")
    assert next(iter(cut)) == b"data: 0\n\n"
    cut.close()

    again = send("/events/", "k")

    assert again["Idempotent-Replayed"] == "true"
    assert again.content.endswith(b"data: 2\n\n")


@pytest.mark.parametrize("database", ["file"], indirect=True)
def test_without_its_tables_the_view_does_not_run(
    database: str, send: Any, caplog: pytest.LogCaptureFixture
) -> None:
    from django.core.management import call_command

    call_command("migrate", "oncekey", "zero", database=database, verbosity=0)
    try:
        refused = send("/plain/", "k")
        with override_settings(IDEMPOTENCY_FAIL_OPEN=True):
            unprotected = send("/plain/", "k")
    finally:
        call_command("migrate", "oncekey", database=database, verbosity=0)

    assert refused.status_code == 503
    assert refused["Retry-After"]
    assert "manage.py migrate oncekey --database=file" in caplog.text
    assert unprotected.status_code == 201
    assert Charge.objects.count() == 1


@in_memory
def test_what_is_no_response_is_for_django_to_refuse(database: str, client: Client) -> None:
    from django.test import RequestFactory

    from oncekey.django import idempotent

    view = idempotent(lambda request: None)
    request = RequestFactory().post("/nothing/", headers={"Idempotency-Key": "k"})

    assert view(request) is None


@in_memory
def test_whoever_lost_its_claim_to_another_request_is_not_shown_its_answer(database: str) -> None:
    """An operator purges the key while its request runs, and the next one asks for more."""

    @idempotent
    def view(request: Any) -> HttpResponse:
        if request.body == b"first":
            assert IdempotencyKey.objects.get().purge()
            assert post(b"second").content == b"second"
        return HttpResponse(request.body, status=201)

    def post(body: bytes) -> HttpResponse:
        keyed = {"Idempotency-Key": "k"}
        request = RequestFactory().post("/x/", body, "text/plain", headers=keyed)
        answer: HttpResponse = view(request)
        return answer

    answer = post(b"first")

    assert answer.status_code == 409
    assert b"claim-lost" in answer.content
