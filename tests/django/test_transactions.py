"""Effect and outcome in one transaction: both are committed, or neither."""

import unittest
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from django.core.management import call_command
from django.db import connections, transaction
from django.test import Client, RequestFactory, TestCase

from oncekey.django import idempotent
from oncekey.django.models import IdempotencyKey
from oncekey.integrations.django.ledgers import ledgers
from tests.django.project.models import Charge
from tests.django.project.views import charge, created


@pytest.fixture
def atomic_requests(database: str) -> Iterator[None]:
    """Every view runs in a transaction, as ATOMIC_REQUESTS has it."""
    connections[database].settings_dict["ATOMIC_REQUESTS"] = True
    yield
    connections[database].settings_dict["ATOMIC_REQUESTS"] = False


def state_of_key() -> str | None:
    found = IdempotencyKey.objects.first()
    return found.state.name if found else None


# -- atomic=True -----------------------------------------------------------------------------


def test_an_exact_view_is_charged_once_and_replayed(send: Any) -> None:
    first, again = send("/exactly-once/", "k"), send("/exactly-once/", "k")

    assert first.status_code == 201
    assert first.content == again.content
    assert again["Idempotent-Replayed"] == "true"
    assert Charge.objects.count() == 1


@pytest.mark.parametrize("then, status", [("500", 500), ("crash", 500)])
@pytest.mark.parametrize("database", ["default", "file", "postgres"], indirect=True)
def test_an_outcome_that_is_not_kept_takes_the_effect_back(
    database: str, send: Any, then: str, status: int
) -> None:
    failed = send(f"/exactly-once/?then={then}", "k")

    assert failed.status_code == status
    assert Charge.objects.count() == 0
    assert state_of_key() is None


@pytest.mark.parametrize("then, status", [("missing", 404), ("terminal", 402)])
@pytest.mark.parametrize("database", ["default", "file", "postgres"], indirect=True)
def test_a_final_exception_is_kept_without_its_effect(
    database: str, send: Any, then: str, status: int
) -> None:
    first, again = (send(f"/exactly-once/?then={then}", "k") for _ in range(2))

    assert first.status_code == again.status_code == status
    assert again["Idempotent-Replayed"] == "true"
    assert Charge.objects.count() == 0


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
@pytest.mark.postgres
def test_a_transaction_the_view_broke_is_not_an_outcome_kept(database: str, send: Any) -> None:
    first = send("/exactly-once/?then=broken", "k")

    assert Charge.objects.count() == 0
    assert first.status_code == 201
    assert state_of_key() == "SUCCEEDED"


def test_the_outcome_is_not_there_before_the_effect_is(database: str) -> None:
    seen: list[str | None] = []

    @idempotent(atomic=True)
    def view(request: Any) -> Any:
        made = charge(request)
        transaction.on_commit(lambda: seen.append(state_of_key()), using=database)
        seen.append(state_of_key())
        return created(made)

    view(RequestFactory().post("/x/", headers={"Idempotency-Key": "k"}))

    assert seen == ["IN_PROGRESS", "SUCCEEDED"]


def test_a_failure_after_the_commit_does_not_undo_it(database: str, send: Any) -> None:
    def fail() -> None:
        raise RuntimeError("the queue is away")

    @idempotent(atomic=True)
    def view(request: Any) -> Any:
        made = charge(request)
        transaction.on_commit(fail, using=database)
        return created(made)

    request = RequestFactory().post("/x/", headers={"Idempotency-Key": "k"})
    with pytest.raises(RuntimeError):
        view(request)

    again = view(RequestFactory().post("/x/", headers={"Idempotency-Key": "k"}))
    assert again["Idempotent-Replayed"] == "true"
    assert Charge.objects.count() == 1


# -- ATOMIC_REQUESTS -------------------------------------------------------------------------


def test_with_atomic_requests_a_retry_is_replayed(atomic_requests: None, send: Any) -> None:
    first, again = send("/plain/", "k"), send("/plain/", "k")

    assert again["Idempotent-Replayed"] == "true"
    assert first.content == again.content
    assert Charge.objects.count() == 1


def test_with_atomic_requests_a_crash_leaves_neither(atomic_requests: None, send: Any) -> None:
    assert send("/raises/crash/", "k").status_code == 500
    assert Charge.objects.count() == 0
    assert state_of_key() is None


def test_with_atomic_requests_a_404_is_kept_without_its_effect(
    atomic_requests: None, send: Any
) -> None:
    first, again = send("/raises/missing/", "k"), send("/raises/missing/", "k")

    assert first.status_code == again.status_code == 404
    assert again["Idempotent-Replayed"] == "true"
    assert Charge.objects.count() == 0


def test_with_atomic_requests_a_returned_500_is_committed_and_released(
    atomic_requests: None, send: Any
) -> None:
    send("/answers/500/", "k")

    assert Charge.objects.count() == 1
    assert state_of_key() is None


def test_with_atomic_requests_exact_views_take_their_effect_back(
    atomic_requests: None, send: Any
) -> None:
    send("/exactly-once/?then=500", "k")

    assert Charge.objects.count() == 0
    assert state_of_key() is None


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
@pytest.mark.postgres
def test_a_duplicate_of_an_open_transaction_is_told_to_wait(
    database: str, atomic_requests: None, send: Any
) -> None:
    statuses = []

    @idempotent
    def view(request: Any) -> Any:
        from threading import Thread

        def duplicate() -> None:
            with transaction.atomic(using=database):
                again = RequestFactory().post("/x/", headers={"Idempotency-Key": "k"})
                statuses.append(view(again).status_code)
            connections[database].close()

        thread = Thread(target=duplicate)
        thread.start()
        thread.join()
        return created(charge(request))

    with transaction.atomic(using=database):
        view(RequestFactory().post("/x/", headers={"Idempotency-Key": "k"}))

    assert statuses == [409]
    assert Charge.objects.count() == 1


# -- a user's own tests ----------------------------------------------------------------------


class UsersTests(TestCase):
    """As a user writes them: every test is rolled back, also what it kept under a key."""

    __test__ = False
    databases: ClassVar[set[str]] = set()

    @classmethod
    def setUpTestData(cls) -> None:
        Charge.objects.create(amount=1000)

    def post(self, path: str) -> Any:
        return Client(raise_request_exception=False).post(path, headers={"Idempotency-Key": "k"})

    def test_one(self) -> None:
        self.check()

    def test_two(self) -> None:
        self.check()

    async def test_three(self) -> None:
        for number in range(2):
            answer = await self.async_client.post("/awaited/", headers={"Idempotency-Key": "k"})
            assert answer.status_code == 201
            assert ("Idempotent-Replayed" in answer) is bool(number)

    async def test_four(self) -> None:
        await self.test_three()

    def check(self) -> None:
        for path in ("/whole/", "/exactly-once/", "/durable/"):
            first, again = self.post(path), self.post(path)
            assert first.status_code == 201
            assert "Idempotent-Replayed" not in first
            assert again["Idempotent-Replayed"] == "true"
        self.post("/exactly-once/?then=crash")
        assert Charge.objects.count() == 4
        # No connection of our own that would keep the test database from being dropped.
        assert ledgers()._opened == {}


def test_tests_of_users_just_work(database: str) -> None:
    UsersTests.databases = {database}
    result = unittest.TestResult()

    unittest.defaultTestLoader.loadTestsFromTestCase(UsersTests).run(result)

    assert (result.testsRun, result.errors, result.failures) == (4, [], [])
    assert IdempotencyKey.objects.count() == 0


def test_a_flushed_database_knows_no_keys(send: Any, database: str) -> None:
    send("/plain/", "k")
    send("/plain/", "k")

    call_command("flush", database=database, interactive=False, verbosity=0)

    assert "Idempotent-Replayed" not in send("/plain/", "k")


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
@pytest.mark.postgres
def test_a_test_database_in_use_can_be_dropped(database: str, send: Any) -> None:
    """As the test runner does after tests that commit."""
    creation = connections[database].creation
    name = connections[database].settings_dict["NAME"]
    connections[database].close()
    creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    try:
        assert send("/plain/", "k").status_code == 201
        assert ledgers()._opened
    finally:
        creation.destroy_test_db(name, verbosity=0)

    assert ledgers()._opened == {}
