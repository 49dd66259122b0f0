"""Sweep: keys past their time, as many as a tenth of the others, are deleted while claims go on."""

from bench.claiming import Claimer
from bench.scale.filling import fill_keys
from bench.scale.growth import LEASE, die_with_a_claim
from bench.scale.places import Place
from bench.scale.stage import Found, Stage

LONGEST_SECONDS = 280.0


def run(stage: Stage, grown: Place | None) -> Found:
    """Claims before it, during it and after it; and new keys into the room that it made."""
    keys, place = stage.sizes.keys, grown or _filled(stage)
    with Claimer(place.url, stage.log("claimer"), lease=LEASE) as claimer:
        claimer.claim(stage.sizes.seconds / 2)
        # The first forgets the processes that filled the store: each had to be looked behind.
        first = claimer.claim_while_sweeping(LONGEST_SECONDS)
        nothing = claimer.claim_while_sweeping(LONGEST_SECONDS)
        stage.tell(
            f"sweep: {first['seconds']:.1f} s with nothing to delete, then {nothing['seconds']:.1f}"
        )
    fill_keys(place.url, keys, keys + stage.sizes.expired, expired=True)
    seconds, before = stage.sizes.seconds, place.sizes()
    with Claimer(place.url, stage.log("claimer"), lease=LEASE) as claimer:
        claimer.claim(seconds / 2)
        without = claimer.claim(seconds)
        during = claimer.claim_while_sweeping(LONGEST_SECONDS)
        swept = place.sizes()
        stage.tell(f"sweep: {during['swept']:,} in {during['seconds']:.0f} s")
        after = claimer.claim(seconds)
        resident_mb = claimer.memory()
        place.vacuum()
        vacuumed = place.sizes()
        refilled = claimer.claim(seconds * 2)["pairs"]
        used = place.sizes()
    stage.tell(
        f"sweep: p99 {without['p99_ms']:.1f} ms without, {during['p99_ms']:.1f} ms during, longest "
        f"{during['max_ms']:.0f} ms"
    )
    return {
        "stored": keys,
        "expired": stage.sizes.expired,
        "first": first,
        "nothing": nothing,
        "without": without,
        "during": during,
        "after": after,
        "rate": during["swept"] / during["seconds"],
        "refilled": refilled,
        "resident_mb": resident_mb,
        "bytes": {"before": before, "swept": swept, "vacuumed": vacuumed, "refilled": used},
    }


def _filled(stage: Stage) -> Place:
    place = stage.new_place()
    die_with_a_claim(stage, place)
    fill_keys(place.url, 0, stage.sizes.keys)
    stage.tell(f"sweep: {stage.sizes.keys:,} keys are there")
    return place
