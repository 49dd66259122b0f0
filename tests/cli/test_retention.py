"""`oncekey retention`: list and set."""

import json

import pytest

from tests.fixtures.command import Run
from tests.fixtures.shelf import Shelf


def test_the_default_classes_are_listed(oncekey: Run, shelf: Shelf) -> None:
    lines = oncekey("retention", "list").stdout.splitlines()
    assert [line.split() for line in lines] == [
        ["CLASS", "KEPT", "FROM"],
        ["financial", "7d", "default"],
        ["interactive", "1d", "default"],
        ["webhook", "7d", "default"],
    ]


def test_a_class_that_is_set_holds_for_everyone(oncekey: Run, shelf: Shelf) -> None:
    done = oncekey("retention", "set", "interactive", "48h")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "interactive: outcomes stored from now on are kept 2d\n"
    assert shelf.ledger.retention()["interactive"] == 172800
    record = shelf.settle("k")
    assert record.completed_at is not None
    assert record.expires_at - record.completed_at == 172800_000


def test_where_a_class_comes_from(oncekey: Run, shelf: Shelf) -> None:
    oncekey("retention", "set", "financial", "90m")
    done = oncekey("retention", "list", "--json", ONCEKEY_RETENTION__NIGHTLY="3d")
    classes = {each["class"]: (each["seconds"], each["from"]) for each in json.loads(done.stdout)}
    assert classes == {
        "financial": (5400.0, "store"),
        "interactive": (86400.0, "default"),
        "nightly": (259200.0, "configuration"),
        "webhook": (604800.0, "default"),
    }


@pytest.mark.parametrize(
    "name, duration, told",
    [
        ("interactive", "soon", "'soon' is not a duration; write 30s, 15m, 24h, 7d or 1d12h"),
        ("interactive", "20000d", "a retention of 1728000000.0 s is not between 0 and ten years"),
        ("Inter active", "1d", "retention class 'Inter active' must be a-z, 0-9, '-' or '_'"),
    ],
)
def test_what_cannot_be_is_refused(
    oncekey: Run, shelf: Shelf, name: str, duration: str, told: str
) -> None:
    done = oncekey("retention", "set", name, duration)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: {told}")
