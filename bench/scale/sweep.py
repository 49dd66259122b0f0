"""Sweep: keys past their time, as many as a tenth of the others, are deleted while claims go on."""

from bench.claiming import Claimer
from bench.scale.filling import fill_keys
from bench.scale.growth import LEASE
from bench.scale.places import Place
from bench.scale.stage import Found, Stage

LONGEST_SECONDS = 280.0


def run(stage: Stage, place: Place) -> Found:
    """Claims before it, during it and after it; and new keys into the room that it made."""
    keys = stage.sizes.keys
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
        grown = place.sizes()
    stage.tell(
        f"sweep: p99 {without['p99_ms']:.1f} ms without, {during['p99_ms']:.1f} ms during, longest "
        f"{during['max_ms']:.0f} ms"
    )
    return {
        "stored": keys,
        "expired": stage.sizes.expired,
        "without": without,
        "during": during,
        "after": after,
        "rate": during["swept"] / during["seconds"],
        "refilled": refilled,
        "resident_mb": resident_mb,
        "bytes": {"before": before, "swept": swept, "vacuumed": vacuumed, "refilled": grown},
    }
