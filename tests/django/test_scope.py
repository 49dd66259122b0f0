"""Whose key it is: organizations, users and strangers never share one."""

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client, override_settings

from oncekey import Identity
from oncekey.django.models import IdempotencyKey
from tests.django.project.models import Charge

pytestmark = pytest.mark.parametrize("database", ["default"], indirect=True)


def by_header(request: Any) -> str | None:
    return request.headers.get("X-Organization")


async def by_header_later(request: Any) -> str | None:
    return request.headers.get("X-Organization")


def by_identity(request: Any) -> Identity:
    return Identity("service:billing", tenant="acme", project="shop")


class Organization:
    pk = 42


def the_only_one(request: Any) -> Organization:
    return Organization()


def user(name: str) -> Any:
    return get_user_model().objects.create_user(name, password="p")


@pytest.mark.parametrize("function", [by_header, f"{__name__}.by_header", by_header_later])
def test_the_same_key_in_two_organizations_is_two_keys(
    database: str, send: Any, function: Any
) -> None:
    with override_settings(IDEMPOTENCY_ORGANIZATION=function):
        answers = [send("/plain/", "k", X_Organization=name) for name in ("a", "b", "a")]

    assert Charge.objects.count() == 2
    assert "Idempotent-Replayed" not in answers[1]
    assert answers[2].content == answers[0].content


@override_settings(IDEMPOTENCY_ORGANIZATION=by_header)
def test_members_of_an_organization_share_its_keys(database: str, client: Client) -> None:
    for name in ("ann", "bob"):
        client.force_login(user(name))
        client.post(
            "/plain/",
            {},
            "application/json",
            headers={"Idempotency-Key": "k", "X-Organization": "acme"},
        )

    assert Charge.objects.count() == 1


@override_settings(IDEMPOTENCY_ORGANIZATION=by_header)
def test_nobody_runs_unprotected_for_want_of_an_organization(database: str, send: Any) -> None:
    assert send("/plain/", "k").content == send("/plain/", "k").content
    assert Charge.objects.count() == 1


@pytest.mark.parametrize(
    "function, namespace",
    [
        (by_identity, "t-acme:shop:service:billing"),
        (the_only_one, "t-default:_tenant:tenant_member:42"),
        (lambda request: "a:b c", "t-default:_tenant:tenant_member:a%3Ab%20c"),
    ],
)
def test_an_organization_is_an_id_an_object_or_an_identity(
    database: str, send: Any, function: Any, namespace: str
) -> None:
    with override_settings(IDEMPOTENCY_ORGANIZATION=function):
        send("/plain/", "k")

    assert IdempotencyKey.objects.get().namespace == namespace


def test_two_users_do_not_share_a_key(database: str, client: Client) -> None:
    for name in ("ann", "bob"):
        client.force_login(user(name))
        client.post("/plain/", {}, "application/json", headers={"Idempotency-Key": "k"})

    assert Charge.objects.count() == 2


def test_a_user_keeps_its_keys_over_a_new_login(database: str, client: Client) -> None:
    ann = user("ann")
    for _ in range(2):
        client.force_login(ann)
        client.post("/plain/", {}, "application/json", headers={"Idempotency-Key": "k"})
        client.logout()

    assert Charge.objects.count() == 1


@pytest.mark.parametrize("header", ["Authorization", "X_Api_Key"])
def test_strangers_are_told_apart_by_their_credentials(
    database: str, send: Any, header: str
) -> None:
    for value in ("Bearer one", "Bearer two", "Bearer one"):
        send("/plain/", "k", **{header: value})

    assert Charge.objects.count() == 2


@override_settings(SESSION_COOKIE_NAME="visit")
def test_strangers_are_told_apart_by_their_session(database: str, client: Client) -> None:
    for value in ("one", "two", "one"):
        client.cookies["visit"] = value
        client.post("/plain/", {}, "application/json", headers={"Idempotency-Key": "k"})

    assert Charge.objects.count() == 2
