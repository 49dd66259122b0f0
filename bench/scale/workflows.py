"""Workflows: many that wait, a kill, and many that are woken at once."""

from bench.flowing import OURS, Flows
from bench.scale.places import Place
from bench.scale.stage import Found, Stage


def run(stage: Stage) -> Found:
    place, waiting = stage.new_place(), stage.sizes.workflows
    with _flows(stage, place) as flows:
        empty = flows.rest(stage.sizes.seconds)
        before = flows.resume(stage.sizes.resumes)
        filled = flows.fill(waiting)
        stage.tell(f"workflows: {waiting:,} wait, started in {filled['seconds']:.0f} s")
        flows.kill()
    with _flows(stage, place) as flows:
        revived = flows.revive(waiting)
        start_s = flows.age
        idle = flows.rest(2 * stage.sizes.seconds)
        size = place.sizes()
        after = flows.resume(stage.sizes.resumes)
        woken = flows.wake(waiting // 4, waiting // 4 + stage.sizes.woken)
    stage.tell(
        f"workflows: {filled['resident_mb']:.0f} MB, again after {start_s:.2f} s, "
        f"resumed in {after['p50_ms']:.1f} ms, {woken['woken']:,} woken at {woken['rate']:,.0f}/s"
    )
    return {
        "waiting": waiting,
        "bytes": size,
        "empty": empty,
        "filled": filled,
        "revived": revived,
        "start_s": start_s,
        "idle": idle,
        "resumed_before": before,
        "resumed": after,
        "woken": woken,
        "wrong": sum(each["wrong"] for each in (before, revived, after, woken)),
    }


def _flows(stage: Stage, place: Place) -> Flows:
    return Flows(stage.scratch, OURS, place.url)
