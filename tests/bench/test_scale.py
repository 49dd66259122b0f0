"""The benchmark at scale, with a few thousand rows and for seconds: its answers hold."""

import json
from pathlib import Path
from typing import Any

import pytest

import oncekey
from bench.apps.claimer import FINGERPRINT, SCOPE, SETTLED, stored_key
from bench.scale.__main__ import main
from bench.scale.filling import fill_keys, fill_promises
from bench.scale.places import POSTGRES, Place
from bench.scale.slope import slope_of
from oncekey.core.decision import Replay
from oncekey.core.model import Operation, Ref

TINY = ["--keys", "3000", "--promises", "3000", "--workflows", "200", "--seconds", "0.3"]
SHORT = ["--soak-minutes", "0.05", "--soak-rate", "60"]


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    made = tmp_path / "scratch"
    made.mkdir()
    return made


def run(store: str, folder: Path, *more: str) -> dict[str, Any]:
    main(["--store", store, "--out", str(folder), *TINY, *SHORT, *more])
    found: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return {part: stores[store] for part, stores in found.items()}


def sections(folder: Path) -> list[str]:
    return (folder / "RESULTS.md").read_text().split("\n## ")[1:]


def test_keys_are_replayed_taken_over_and_swept(tmp_path: Path, scratch: Path) -> None:
    found = run("sqlite", tmp_path, "--only", "growth", "sweep", "--scratch", str(scratch))

    empty, full = found["growth"]["points"]
    assert (empty["stored"], full["stored"]) == (0, 3000)
    assert (full["cold_wrong"], full["cold_rate"] > 0, full["taken_ms"] > 0) == (0, True, True)
    assert full["data"] > empty["data"]
    swept = found["sweep"]
    assert (swept["during"]["swept"], swept["during"]["ended"]) == (300, 1)
    assert (swept["nothing"]["swept"], swept["refilled"] > 0) == (0, True)
    assert all("| --- |" in each for each in sections(tmp_path))
    assert list(scratch.iterdir()) == []


def test_promises_are_made_found_and_resolved(tmp_path: Path, scratch: Path) -> None:
    found = run("sqlite", tmp_path, "--only", "promises", "--scratch", str(scratch))["promises"]
    assert (found["few"]["wrong"], found["many"]["wrong"]) == (0, 0)
    assert found["many"]["resolved"]["count"] >= 100
    assert found["many"]["parked"]["count"] == 100


def test_workflows_wait_and_go_on(tmp_path: Path, scratch: Path) -> None:
    found = run("sqlite", tmp_path, "--only", "workflows", "--scratch", str(scratch))["workflows"]
    assert found["wrong"] == 0
    assert found["revived"]["revived"] == 21
    assert found["woken"]["woken"] >= 10


def test_a_soak_gets_the_answers_it_expects(tmp_path: Path, scratch: Path) -> None:
    found = run("sqlite", tmp_path, "--only", "soak", "--scratch", str(scratch))["soak"]
    assert sum(each["wrong"] for each in found["samples"]) == 0
    assert {"new", "start", "deliver"} <= set(found["statuses"])
    assert found["rows"]["end"]["oncekey_executions"] > 0
    assert all("| --- |" in each for each in sections(tmp_path))


@pytest.mark.postgres
def test_the_other_store_is_filled_with_the_same(postgres_url: str) -> None:
    fill_keys(postgres_url, 0, 500)
    fill_keys(postgres_url, 500, 600, expired=True)
    fill_promises(postgres_url, 0, 300)

    ledger = oncekey.open(postgres_url, sweep_interval=0.0)
    decision = ledger.begin(Operation(Ref(SCOPE, stored_key(499)), FINGERPRINT))
    assert isinstance(decision, Replay)
    assert decision.record.outcome == SETTLED
    assert ledger.sweep() == 100
    ledger.close()
    place = Place(POSTGRES, postgres_url)
    assert (place.rows()["oncekey_claims"], place.rows()["oncekey_promises"]) == (800, 300)
    assert place.sizes()["data"] > 0


def test_a_slope_is_by_the_hour() -> None:
    samples = [{"at": 60.0 * minute, "mb": 2.0 * minute} for minute in range(5)]
    assert slope_of(samples, "mb") == pytest.approx(120)
