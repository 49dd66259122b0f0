"""Promises: a million that wait, each with its key; what making and resolving one costs then."""

import time
from pathlib import Path

from bench.scale.filling import fill_promises
from bench.scale.places import Place
from bench.scale.stage import Found, Stage
from bench.working import Worker


class Promiser(Worker):
    """One process with an engine open; see bench/apps/promiser.py for the orders it takes."""

    def __init__(self, url: str, log: Path) -> None:
        self._started = time.monotonic()
        super().__init__("promiser", [url], log)

    @property
    def age(self) -> float:
        return time.monotonic() - self._started


def run(stage: Stage) -> Found:
    """The few that are touched are made by the engine, the others in bulk."""
    place, touched, pending = stage.new_place(), stage.sizes.touched, stage.sizes.promises
    few = _look(stage, place, 0, touched)
    began = time.monotonic()
    fill_promises(place.url, 2 * touched, pending)
    stage.tell(f"promises: {pending:,} wait, filled in {time.monotonic() - began:.0f} s")
    many = _look(stage, place, pending, pending + touched)
    return {"pending": pending, "touched": touched, "few": few, "many": many}


def _look(stage: Stage, place: Place, first: int, last: int) -> Found:
    """Makes those from one place to another, and resolves as many of all there are."""
    number, before = last - first, place.sizes()
    with Promiser(place.url, stage.log("promiser")) as promiser:
        opened = promiser.order("arrive")["open_ms"]
        empty_mb = promiser.order("memory")["resident_mb"]
        created = promiser.order("create", first, last)
        found = promiser.order("find", number, 2 * number if first else 0, last)
        # All but the last, which is for the process after the kill.
        lowest = 2 * number if first else 0
        resolved = promiser.order("resolve", number // 2, lowest, last - 1)
        parked = promiser.order("park", number // 2) if first else {}
        resident_mb = promiser.order("memory")["resident_mb"]
        promiser.kill()
    with Promiser(place.url, stage.log("promiser")) as promiser:
        again = promiser.order("resolve", 1, last - 1, last)
        again_s = promiser.age
    stage.tell(
        f"promises: with {first:,} more: made {created['rate']:,.0f}/s, "
        f"resolved {resolved['rate']:,.0f}/s, p99 {resolved['p99_ms']:.1f} ms, "
        f"first resolved {again_s:.2f} s after kill -9"
    )
    return {
        "bytes": before,
        "open_ms": opened,
        "empty_mb": empty_mb,
        "resident_mb": resident_mb,
        "again_s": again_s,
        "created": created,
        "found": found,
        "resolved": resolved,
        "parked": parked,
        "wrong": sum(each.get("wrong", 0) for each in (created, found, resolved, parked, again)),
    }
