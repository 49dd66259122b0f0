"""`oncekey schedules`: list, show, pause and resume."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from oncekey.core.schedules import FindSchedule, KeepSchedule, StoredSchedule
from oncekey.core.waiting import ThreadWaiter
from oncekey.schedules import CallUrl, Cron, Every, Schedule, Scheduler, StartWorkflow
from tests.fixtures.command import Run
from tests.fixtures.receiver import SECRET, Receiver
from tests.fixtures.shelf import Shelf

NIGHTLY = Schedule(
    "nightly", Cron("0 3 * * *", "Europe/Berlin"), StartWorkflow("close", {"depth": 2}), "acme"
)
OFTEN = Schedule("often", Every(90_000), CallUrl("http://shop/ticks", secret=SECRET))
HOUR = 3_600_000


def declare(shelf: Shelf, *schedules: Schedule, now: int | None = None) -> None:
    """With `now`, what is due at that time is had as well."""

    async def run() -> None:
        scheduler = Scheduler(shelf.ledger, None, schedules)
        await scheduler.declare()
        if now is not None:
            await scheduler.run_once(now)
        await scheduler.close()

    asyncio.run(run())


def ask(shelf: Shelf, request: object) -> StoredSchedule:
    waiter = ThreadWaiter()
    shelf.ledger.store.submit(request, waiter)
    found: StoredSchedule = waiter.wait()
    return found


def test_schedules_are_listed_in_the_order_of_their_ids(oncekey: Run, shelf: Shelf) -> None:
    declare(shelf, OFTEN, NIGHTLY)
    done = oncekey("schedules", "list")
    assert (done.returncode, done.stderr) == (0, "")
    head, first, second = done.stdout.splitlines()
    assert head.split() == ["ID", "TENANT", "TICKS", "EFFECT", "MISSED", "STATE", "LAST", "NEXT"]
    assert first.startswith("nightly  acme     cron 0 3 * * * Europe/Berlin  workflow close")
    assert second.split()[:7] == "often default every 90s POST http://shop/ticks last".split()


def test_a_list_of_one_tenant_as_json(oncekey: Run, shelf: Shelf) -> None:
    declare(shelf, OFTEN, NIGHTLY)
    (listed,) = json.loads(oncekey("schedules", "list", "--tenant", "acme", "--json").stdout)
    assert listed["next_at"].endswith(":00:00.000Z")
    assert {name: value for name, value in listed.items() if not name.endswith("_at")} == {
        "id": "nightly",
        "tenant": "acme",
        "timing": "cron 0 3 * * * Europe/Berlin",
        "workflow": "close",
        "url": None,
        "missed": "last",
        "declared_by": "code",
        "paused": False,
    }
    assert listed["last_at"] is None


def test_no_schedules(oncekey: Run, shelf: Shelf) -> None:
    assert oncekey("schedules", "list").stdout == "no schedules\n"
    assert json.loads(oncekey("schedules", "list", "--json").stdout) == []


def test_one_is_shown_with_the_ticks_to_come(oncekey: Run, shelf: Shelf) -> None:
    declare(shelf, OFTEN)
    done = oncekey("schedules", "show", "often", TZ="UTC")
    names = [line.split("  ")[0] for line in done.stdout.splitlines()]
    assert names[-6:] == ["next tick", *["then"] * 5]
    assert "signed with  a secret of its own\n" in done.stdout
    assert SECRET not in done.stdout
    stored = ask(shelf, FindSchedule("often"))
    shown = json.loads(oncekey("schedules", "show", "often", "--json").stdout)
    assert len(shown["upcoming"]) == 5
    assert shown["upcoming"][0] > shown["next_at"]
    assert stored.next_at % 90_000 == 0


@pytest.mark.parametrize("status, told", [(201, "succeeded: answered"), (422, "failed: answered")])
def test_what_became_of_the_last_tick_is_shown(
    oncekey: Run, shelf: Shelf, receiver: Receiver, status: int, told: str
) -> None:
    receiver.answers = [status]
    schedule = Schedule("often", Every(HOUR), CallUrl(receiver.url, {"a": 1}, secret=SECRET))
    declare(shelf, schedule, now=shelf.ledger.clock.now() + HOUR)
    shown = oncekey("schedules", "show", "often").stdout
    assert re.search(rf"(?m)^last tick    .* [+-]\d{{4}}, {told} {status}$", shown)
    shown = json.loads(oncekey("schedules", "show", "often", "--json").stdout)
    assert (shown["last_outcome"]["text"], shown["data"]) == (f"answered {status}", {"a": 1})
    assert shown["last_at"] < shown["next_at"]


def test_a_schedule_is_paused_and_goes_on(oncekey: Run, shelf: Shelf) -> None:
    declare(shelf, OFTEN)
    done = oncekey("schedules", "pause", "often")
    assert (done.returncode, done.stdout) == (0, "often: paused\n")
    assert ask(shelf, FindSchedule("often")).paused
    assert " paused " in oncekey("schedules", "list").stdout

    before = shelf.ledger.clock.now()
    done = oncekey("schedules", "resume", "often")
    assert done.stdout.startswith("often: the next tick is at ")
    resumed = ask(shelf, FindSchedule("often"))
    assert not resumed.paused
    assert resumed.next_at > before


@pytest.mark.parametrize("verb", ["show", "pause", "resume"])
def test_what_is_not_there_is_told(oncekey: Run, shelf: Shelf, verb: str) -> None:
    done = oncekey("schedules", verb, "weekly")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: there is no schedule 'weekly'; see `oncekey schedules list`\n"


def test_what_another_version_stored_is_listed_all_the_same(oncekey: Run, shelf: Shelf) -> None:
    spec = '{"timing": "moon", "paused": false, "missed": "never"}'
    ask(shelf, KeepSchedule("odd", "default", spec, False, 0, 0))
    done = oncekey("schedules", "list")
    assert "schedule odd was stored by another version of OnceKey" in done.stdout
    (listed,) = json.loads(oncekey("schedules", "list", "--json").stdout)
    assert "another version" in listed["error"]
    assert oncekey("schedules", "show", "odd").returncode == 1


def test_a_check_counts_schedules(oncekey: Run, tmp_path: Path) -> None:
    file = "[[schedules]]\nid = 'a'\nevery = '1m'\nworkflow = 'w'\n"
    (tmp_path / "oncekey.toml").write_text(file)
    assert "configuration: ok, 0 routes, 1 schedule\n" in oncekey("check", "--offline").stdout
