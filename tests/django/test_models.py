"""The models read; only the ledger writes."""

from typing import Any

import pytest

from oncekey import State
from oncekey.django.models import IdempotencyKey, IdempotencyOutcome
from oncekey.integrations.django.models import ReadOnlyError
from tests.django.project.models import Charge


def test_a_key_tells_what_became_of_it(send: Any) -> None:
    answer = send("/plain/", "k", amount=2)

    key = IdempotencyKey.objects.get()

    assert key.operation_id == answer["X-Operation-Id"]
    assert (key.key, key.endpoint, key.state) == ("k", "POST /plain/", State.SUCCEEDED)
    assert (key.attempts, str(key)) == (1, "k (POST /plain/)")
    assert key.outcome is not None
    assert bytes(key.outcome.body) == answer.content
    assert ("X-Charge", "made") in key.outcome.header_lines
    assert str(key.outcome) == "response 201"
    assert (key.expires - key.outcome.completed).total_seconds() == 24 * 3600
    assert key.created <= key.outcome.completed


def test_a_key_can_be_purged(send: Any) -> None:
    send("/plain/", "k")

    assert IdempotencyKey.objects.get().purge()

    send("/plain/", "k")
    assert Charge.objects.count() == 2


@pytest.mark.parametrize("database", ["default"], indirect=True)
def test_nothing_is_written_through_them(database: str, send: Any) -> None:
    send("/plain/", "k")
    key = IdempotencyKey.objects.get()
    writes = [
        key.save,
        key.delete,
        IdempotencyKey.objects.create,
        IdempotencyKey.objects.all().delete,
        lambda: IdempotencyKey.objects.update(key="other"),
        IdempotencyOutcome.objects.all().delete,
    ]

    for write in writes:
        with pytest.raises(ReadOnlyError, match="purge"):
            write()
