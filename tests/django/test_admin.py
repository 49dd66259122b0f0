"""The admin page: keys are found, shown escaped and cut, and purged; nothing is written."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client

from oncekey.core.model import Kind, Operation, Outcome, Ref
from oncekey.core.scope import Scope
from oncekey.django.models import IdempotencyKey
from oncekey.integrations.django.ledgers import ledgers
from tests.django.project.models import Charge

PAGE = "/admin/oncekey/idempotencykey/"
ATTACK = "<script>alert(1)</script>"


@pytest.fixture
def operator(client: Client) -> Client:
    client.force_login(get_user_model().objects.create_superuser("root", password="p"))
    return client


def keep(database: str, key: str, outcome: Outcome | None = None) -> IdempotencyKey:
    ledger = ledgers().of(database)
    claim: Any = ledger.begin(Operation(Ref(Scope("t-a:_tenant:user:1", "POST /x/"), key)))
    if outcome is not None:
        claim.claim.settle(outcome)
    return IdempotencyKey.objects.get(key=key)


def response(body: bytes, status: int = 200) -> Outcome:
    return Outcome(Kind.RESPONSE, status, ((b"x-note", ATTACK.encode()),), body)


def test_the_list_shows_keys_with_their_state(operator: Client, database: str) -> None:
    keep(database, "done", response(b"ok"))
    keep(database, "bad", response(b"no", 422))
    keep(database, "running")

    page = operator.get(PAGE).content.decode()

    for text in ("done", "bad", "running", "succeeded", "failed", "in progress", "POST /x/"):
        assert text in page


@pytest.mark.parametrize(
    "query, shown",
    [
        ("state=succeeded", {"k-done"}),
        ("state=failed", {"k-bad"}),
        ("state=in_progress", {"k-running"}),
        ("q=k-d", {"k-done"}),
        ("q=done", set()),
    ],
)
@pytest.mark.parametrize("database", ["default"], indirect=True)
def test_the_list_can_be_narrowed(
    operator: Client, database: str, query: str, shown: set[str]
) -> None:
    keep(database, "k-done", response(b"ok"))
    keep(database, "k-bad", response(b"no", 422))
    keep(database, "k-running")

    page = operator.get(f"{PAGE}?{query}").content.decode()

    assert {name for name in ("k-done", "k-bad", "k-running") if f">{name}<" in page} == shown


def test_whatever_was_stored_is_shown_escaped(operator: Client, database: str) -> None:
    key = keep(database, ATTACK, response(ATTACK.encode()))

    pages = [operator.get(PAGE), operator.get(f"{PAGE}{key.pk}/change/")]

    for page in pages:
        assert page.status_code == 200
        assert ATTACK not in page.content.decode()
    assert "&lt;script&gt;" in pages[1].content.decode()


@pytest.mark.parametrize(
    "body, text",
    [
        (b"\x00\xff\xfe", "00 fffe"),
        ("ä".encode() * 4000, "3904 bytes more"),
        (b"", "<pre></pre>"),
    ],
)
@pytest.mark.parametrize("database", ["default"], indirect=True)
def test_bodies_of_any_kind_are_shown_in_part(
    operator: Client, database: str, body: bytes, text: str
) -> None:
    key = keep(database, "k", response(body))

    assert text in operator.get(f"{PAGE}{key.pk}/change/").content.decode()


@pytest.mark.parametrize("database", ["default"], indirect=True)
def test_nothing_can_be_added_changed_or_deleted(operator: Client, database: str) -> None:
    key = keep(database, "k", response(b"ok"))

    assert operator.get(f"{PAGE}add/").status_code == 403
    assert operator.post(f"{PAGE}{key.pk}/change/", {"key": "other"}).status_code == 403
    assert operator.post(f"{PAGE}{key.pk}/delete/", {"post": "yes"}).status_code == 403
    assert IdempotencyKey.objects.get().key == "k"


def test_a_purged_key_runs_again(operator: Client, send: Any) -> None:
    send("/plain/", "k")
    send("/plain/", "k")
    key = IdempotencyKey.objects.get()

    page = operator.post(PAGE, {"action": "purge", "_selected_action": [key.pk]}, follow=True)

    assert "1 key purged." in page.content.decode()
    assert LogEntry.objects.get().get_change_message() == "Purged."
    send("/plain/", "k")
    assert Charge.objects.count() == 2


@pytest.mark.parametrize("database", ["default"], indirect=True)
def test_only_those_who_may_delete_may_purge(client: Client, database: str) -> None:
    viewer = get_user_model().objects.create_user("v", password="p", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_idempotencykey"))
    client.force_login(viewer)
    key = keep(database, "k", response(b"ok"))

    assert client.get(PAGE).status_code == 200
    client.post(PAGE, {"action": "purge", "_selected_action": [key.pk]})

    assert IdempotencyKey.objects.count() == 1
