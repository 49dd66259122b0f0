"""Growth: what new keys, replays, a start and a takeover cost, as the store gets larger.

A small store is measured in turn with the large one: others on the machine slow both.
"""

import time
from collections.abc import Callable
from itertools import pairwise
from statistics import median

from bench import machine
from bench.claiming import Claimer
from bench.rounds import run_round
from bench.scale.filling import fill_keys
from bench.scale.places import Place
from bench.scale.stage import Found, Stage

# Few enough to stay in memory once they were replayed.
HOT = 256
HELD = 64
SMALL = 10_000
ROUNDS = 5
# Short, as PostgreSQL lets claims go only after it; SQLite sees the end of a process.
LEASE = 3.0
SYNCS = 50
_FIGURES = ("rate", "p50_ms", "p99_ms", "cpu_us")
Samples = list[dict[str, float]]


def run(stage: Stage) -> tuple[Found, Place]:
    """One store grows; the empty one is another. It is left full, for what comes next."""
    small, place = stage.new_place(), stage.new_place()
    fill_keys(small.url, 0, SMALL)
    die_with_a_claim(stage, place)
    # Without a memory of its own, as next to nothing of the large store is in that of its process.
    with Claimer(small.url, stage.log("small"), lease=LEASE, cache_bytes=0) as beside:
        beside.claim(stage.sizes.seconds)
        points = [_look(stage, stage.new_place(), 0, beside)]
        for before, size in pairwise(stage.sizes.steps):
            began = time.monotonic()
            fill_keys(place.url, before, size)
            seconds = time.monotonic() - began
            stage.tell(f"growth: {size:,} keys are there, filled in {seconds:.0f} s")
            points.append(_look(stage, place, size, beside))
    return {"points": points, "small": SMALL}, place


def die_with_a_claim(stage: Stage, place: Place) -> None:
    """Somebody died holding a key that nobody asks for again: every later key comes after it."""
    with Claimer(place.url, stage.log("claimer"), lease=LEASE) as claimer:
        claimer.hold("lost", 1)
        claimer.kill()


def _look(stage: Stage, place: Place, size: int, beside: Claimer) -> dict[str, float]:
    point = {"stored": size, **place.sizes(), "sync_ms": machine.fdatasync_ms(stage.scratch, SYNCS)}
    with Claimer(place.url, stage.log("claimer"), lease=LEASE) as claimer:
        arrived = claimer.arrive()
        point["empty_mb"] = claimer.memory()
        # Not counted: after the filling, the first claims find nothing in memory.
        claimer.claim(stage.sizes.seconds / 2)
        point |= _beside(stage, size, claimer, beside)
        point["resident_mb"] = claimer.memory()
        claimer.hold(f"held-{size}", HELD)
        claimer.kill()
    point |= {"open_ms": arrived["open_ms"], "first_ms": arrived["first_ms"]}
    point |= _after_the_kill(stage, place, size)
    stage.tell(_told(point))
    return point


def _beside(stage: Stage, size: int, claimer: Claimer, beside: Claimer) -> dict[str, float]:
    """New keys and replays, in turns with the small store."""
    seconds = stage.sizes.seconds / ROUNDS
    found = _compare(
        "new", {"": lambda: claimer.claim(seconds), "beside": lambda: beside.claim(seconds)}
    )
    if not size:
        return found
    found |= _compare(
        "cold",
        {
            "": lambda: claimer.replay(0, size, seconds),
            "beside": lambda: beside.replay(0, SMALL, seconds),
        },
    )
    hot = claimer.replay(0, min(HOT, size), seconds)
    return found | {f"hot_{name}": hot[name] for name in _FIGURES}


def _compare(what: str, turns: dict[str, Callable[[], dict[str, float]]]) -> dict[str, float]:
    samples: dict[str, Samples] = {name: [] for name in turns}

    def rate_of(name: str) -> float:
        samples[name].append(turns[name]())
        return samples[name][-1]["rate"]

    ratios = [run_round("beside", [""], number, rate_of)[""] for number in range(ROUNDS)]
    ours = samples[""]
    return {
        f"{what}_ratio": median(ratios),
        f"{what}_lowest": min(ratios),
        f"{what}_highest": max(ratios),
        f"{what}_beside_cpu_us": median(each["cpu_us"] for each in samples["beside"]),
        f"{what}_wrong": sum(each["wrong"] for each in ours),
        **{f"{what}_{name}": median(each[name] for each in ours) for name in _FIGURES},
    }


def _after_the_kill(stage: Stage, place: Place, size: int) -> dict[str, float]:
    killed = time.monotonic()
    with Claimer(place.url, stage.log("claimer"), lease=LEASE) as claimer:
        again = claimer.arrive()
        taken = claimer.take_over(f"held-{size}", HELD)
        return {
            "takeover_s": time.monotonic() - killed,
            "again_ms": again["open_ms"] + again["first_ms"],
            "taken_ms": taken["all_ms"],
        }


def _told(point: dict[str, float]) -> str:
    replayed = f"replays × {point['cold_ratio']:.2f}, " if "cold_ratio" in point else ""
    return (
        f"growth: {point['stored']:,} keys: new {point['new_rate']:,.0f}/s × "
        f"{point['new_ratio']:.2f}, {replayed}{point['data'] / 1e6:,.0f} MB, "
        f"{point['resident_mb']:.0f} MB resident, "
        f"open {point['open_ms']:.0f} ms, takeover {point['takeover_s']:.1f} s"
    )
