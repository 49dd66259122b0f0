"""Soak: `oncekey serve` under a steady mix; retention is so short that it sweeps all the time."""

import asyncio
import http.client
import json
import shutil
import subprocess
import time
from pathlib import Path

import oncekey
from bench.apps.latencies import percentiles
from bench.apps.memory import resident_mb
from bench.console.asking import Served
from bench.machine import PROGRAMS
from bench.scale import shop
from bench.scale.mixed import Answered, Mixed, Target
from bench.scale.places import Place
from bench.scale.slope import slope_of
from bench.scale.stage import Found, Stage
from oncekey.core.callers import Callers

LONGEST_PAUSE = 10.0
_CONFIG = """
[server]
port = 0
[store]
url = "{url}"
sweep_interval = "10s"
cache_bytes = 4194304
[retention]
interactive = "60s"
webhook = "60s"
[app]
target = "shop:app"
workflows = "shop:flows"
[auth.api_keys]
[[routes]]
path = "/orders"
methods = ["POST"]
policy = "REQUIRED_A"
"""
_THEN = 'resolve:"pay:" + body.id'
Samples = list[dict[str, float]]


def run(stage: Stage) -> Found:
    place, folder = stage.new_place(), stage.scratch / f"soak-{stage.store}"
    folder.mkdir()
    shutil.copy(shop.__file__, folder / "shop.py")
    _make_key(folder)
    served = Served(place.url, folder, _CONFIG.format(url=place.url), signs_in=False)
    try:
        target = _target(served, place, folder)
        mixed = Mixed(target, stage.sizes.soak_rate)
        samples, rows = asyncio.run(_watch(stage, mixed, served, place))
    finally:
        served.close()
    half = samples[len(samples) // 2 :]
    used = [{**each, "used": each["data"] - each["free"]} for each in half]
    return {
        "rate": stage.sizes.soak_rate,
        "samples": samples,
        "rows": rows,
        "statuses": mixed.statuses,
        "slopes": {
            name: slope_of(used, name) for name in ("resident_mb", "data", "used", "p99_ms")
        },
    }


def _make_key(folder: Path) -> None:
    """For the secrets of webhooks; where machines share a store, nobody makes one by itself."""
    command = [str(PROGRAMS / "oncekey"), "webhooks", "key"]
    made = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    path = folder / "oncekey-webhooks.key"
    path.touch(mode=0o600)
    path.write_text(made.stdout)


def _target(served: Served, place: Place, folder: Path) -> Target:
    ledger = oncekey.open(place.url, sweep_interval=0.0)
    _, caller = asyncio.run(Callers(ledger).create("default"))
    ledger.close()
    command = [str(PROGRAMS / "oncekey"), "webhooks", "create", "--provider", "github"]
    command += ["--then", _THEN, "--json", "--config", str(folder / "oncekey.toml")]
    made = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    webhook = json.loads(made.stdout)
    return Target(served.port, caller, webhook["id"], webhook["secret"])


async def _watch(
    stage: Stage, mixed: Mixed, served: Served, place: Place
) -> tuple[Samples, dict[str, dict[str, int]]]:
    """The samples, and how many rows there are in the middle and at the end."""
    seconds = stage.sizes.soak_minutes * 60
    load = asyncio.create_task(mixed.run(seconds))
    samples: Samples = []
    rows: dict[str, dict[str, int]] = {}
    began, pause = time.monotonic(), min(LONGEST_PAUSE, seconds / 6)
    used, at = served.processor_seconds(), began
    while not load.done():
        await asyncio.wait([load], timeout=pause)
        now = time.monotonic()
        found = await asyncio.to_thread(_look, served, place)
        took = served.processor_seconds()
        found |= {"at": now - began, "cores": (took - used) / (now - at)}
        samples.append({**found, **_summary(mixed.take(), now - at)})
        used, at = took, now
        if "middle" not in rows and now - began >= seconds / 2:
            rows["middle"] = await asyncio.to_thread(place.rows)
        _tell(stage, samples)
    await load
    rows["end"] = await asyncio.to_thread(place.rows)
    rows.setdefault("middle", rows["end"])
    return samples, rows


def _look(served: Served, place: Place) -> dict[str, float]:
    folder = Path(f"/proc/{served.pid}")
    began = time.perf_counter()
    told = _metrics(served)
    return {
        "metrics_ms": (time.perf_counter() - began) * 1e3,
        "metrics_bytes": told,
        "resident_mb": resident_mb(served.pid),
        "files": _count(folder / "fd"),
        "threads": _count(folder / "task"),
        "lag_s": place.lag(int(time.time() * 1000)),
        **place.sizes(),
    }


def _count(folder: Path) -> int:
    return sum(1 for _ in folder.iterdir())


def _metrics(served: Served) -> int:
    """As Prometheus asks for them; how large they are."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    try:
        connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {served.secret}"})
        return len(connection.getresponse().read())
    finally:
        connection.close()


def _summary(answered: list[Answered], seconds: float) -> dict[str, float]:
    return {
        "rate": len(answered) / seconds,
        **percentiles([each.seconds for each in answered] or [0.0]),
        "wrong": sum(not each.is_good for each in answered),
    }


def _tell(stage: Stage, samples: Samples) -> None:
    last = samples[-1]
    if len(samples) % 6 == 1:
        stage.tell(
            f"soak: {last['rate']:.0f}/s, p99 {last['p99_ms']:.0f} ms, "
            f"{last['resident_mb']:.0f} MB resident, {last['data'] / 1e6:.1f} MB on disk, "
            f"sweep is {last['lag_s']:.0f} s behind, {last['wrong']:.0f} wrong"
        )
