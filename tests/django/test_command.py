"""`cleanup_idempotency_keys`: what is past its time goes, everything else stays."""

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from oncekey.django.models import IdempotencyKey

NAME = "cleanup_idempotency_keys"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def expired(database: str, send: Any) -> None:
    """Three keys past their time, one that is not."""
    with override_settings(IDEMPOTENCY_KEY_TTL_HOURS=0.001 / 3600):
        for number in range(3):
            send("/plain/", f"old-{number}")
    send("/plain/", "new")


def output_of(*words: str, **streams: Any) -> str:
    written = io.StringIO()
    call_command(NAME, *words, stdout=written, **streams)
    return written.getvalue().strip()


def test_it_deletes_what_is_expired(expired: None) -> None:
    assert output_of() == "3 keys deleted"
    assert [key.key for key in IdempotencyKey.objects.all()] == ["new"]


def test_a_dry_run_only_counts(expired: None) -> None:
    assert output_of("--dry-run") == "3 keys expired"
    assert IdempotencyKey.objects.count() == 4


def test_machines_get_json(expired: None) -> None:
    assert json.loads(output_of("--json", "--dry-run")) == {"expired": 3}
    assert json.loads(output_of("--json")) == {"deleted": 3}
    assert json.loads(output_of("--json")) == {"deleted": 0}


@pytest.mark.parametrize("database", ["default"], indirect=True)
def test_people_see_how_far_it_is(database: str, expired: None) -> None:
    terminal = Terminal()

    assert output_of(stderr=terminal) == "3 keys deleted"
    assert "3 of 3 keys deleted" in terminal.getvalue()


@pytest.mark.parametrize("database", ["file"], indirect=True)
def test_missing_tables_are_said_in_one_line(database: str) -> None:
    call_command("migrate", "oncekey", "zero", database=database, verbosity=0)
    try:
        with pytest.raises(CommandError, match=r"manage\.py migrate oncekey --database=file"):
            call_command(NAME)
    finally:
        call_command("migrate", "oncekey", database=database, verbosity=0)
