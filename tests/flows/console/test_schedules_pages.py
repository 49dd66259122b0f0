"""Schedules in the console: seen with their ticks, paused and resumed once."""

import pytest
from markupsafe import escape

from oncekey.schedules import Every, Schedule, Scheduler, StartWorkflow
from oncekey.schedules.scheduler import Ran
from tests.fixtures.api_site import ApiSite, api_site
from tests.fixtures.console_site import ConsoleSite, Visitor
from tests.fixtures.frozen import FrozenClock
from tests.fixtures.operator import at_console
from tests.fixtures.ticks import MINUTE, START

HOSTILE = "<script>alert(1)</script>\"'&"


def test_schedules_are_listed(visitor: Visitor) -> None:
    page = visitor.see("/schedules")
    assert 'href="/console/schedules/nightly">nightly</a>' in page
    assert "0 3 * * *" in page
    assert "broken" in page
    assert "No schedules" in visitor.see("/schedules", tenant="nobody")


def test_one_shows_what_it_starts_and_when(console_site: ConsoleSite, visitor: Visitor) -> None:
    shape = console_site.tell("schedules/nightly")
    page = visitor.see("/schedules/nightly")
    for at in (shape["next_at"], *shape["upcoming"]):
        assert f'datetime="{at}"' in page
    assert "broken" in page
    assert "the night" in page
    assert "There was none yet." in page
    assert "the last one is made up for" in page


async def ticked(site: ApiSite, clock: FrozenClock, target: StartWorkflow) -> Ran:
    """The first tick of a schedule."""
    hourly = Schedule("hourly", Every(60 * MINUTE), target, tenant="acme")
    scheduler = Scheduler(site.ledger, site.app.engine, [hourly])
    await scheduler.declare()
    clock.advance(60 * MINUTE)
    (ran,) = await scheduler.run_once()
    await scheduler.close()
    return ran


@pytest.mark.anyio
async def test_the_last_tick_leads_to_what_it_started() -> None:
    clock = FrozenClock(START)
    async with api_site("memory://", clock=clock, sweep_interval=0) as site:
        ran = await ticked(site, clock, StartWorkflow("echo", HOSTILE))
        async with at_console(site) as operator:
            page = await operator.html("/schedules/hourly")
            listed = await operator.html("/schedules", tenant="acme")
    assert f'href="/console/workflows/{ran.text}"' in page
    assert "succeeded" in page
    assert str(escape(HOSTILE)) in page
    assert "<script>alert" not in page
    assert 'href="/console/schedules/hourly"' in listed


@pytest.mark.anyio
async def test_a_run_that_failed_and_a_tick_that_is_late_are_seen_in_the_list() -> None:
    clock = FrozenClock(START)
    async with api_site("memory://", clock=clock, sweep_interval=0) as site:
        ran = await ticked(site, clock, StartWorkflow("refusing"))
        await (await site.client("acme")).end_of(ran.text)
        async with at_console(site) as operator:
            listed = await operator.html("/schedules")
            assert '<span class="badge bad">failed</span>' in listed
            assert "overdue" not in listed
            # What was started counts, and not that it was started.
            page = await operator.html("/schedules/hourly")
            assert '<span class="badge bad">failed</span>' in page
            assert "succeeded" not in page
            clock.advance(62 * MINUTE)
            listed = await operator.html("/schedules")
            assert '<span class="badge warn">overdue</span>' in listed


def test_it_is_paused_and_resumed_once(console_site: ConsoleSite, visitor: Visitor) -> None:
    page = visitor.see("/schedules/nightly")
    assert 'href="/console/schedules/nightly/pause"' in page
    assert "/resume" not in page
    form = visitor.fields("/schedules/nightly/pause")
    first, second = (visitor.send("/schedules/nightly/pause", form) for _ in range(2))
    assert first.headers["location"] == "/console/schedules/nightly?said=schedule-paused"
    assert second.headers["location"].endswith("&again=1")
    assert console_site.tell("schedules/nightly")["paused"] is True
    page = visitor.see("/schedules/nightly", said="schedule-paused")
    assert "None while it is paused." in page
    assert "no tick is begun until it is resumed" in page
    assert "/pause" not in page

    form = visitor.fields("/schedules/nightly/resume")
    first, second = (visitor.send("/schedules/nightly/resume", form) for _ in range(2))
    assert first.headers["location"] == "/console/schedules/nightly?said=schedule-resumed"
    assert second.headers["location"].endswith("&again=1")
    assert console_site.tell("schedules/nightly")["paused"] is False
    entries = console_site.tell("audit", target="nightly")["entries"]
    assert [each["action"] for each in entries] == ["schedule.resume", "schedule.pause"]


@pytest.mark.parametrize("action", ["", "/pause", "/resume"])
@pytest.mark.parametrize("id", ["nothing", "%3Cscript%3E", "a%2Fb"])
def test_what_is_not_there_is_not_found(visitor: Visitor, action: str, id: str) -> None:  # noqa: A002
    visitor.see(f"/schedules/{id}{action}", 404)


def test_an_action_on_nothing_does_nothing(console_site: ConsoleSite, visitor: Visitor) -> None:
    form = visitor.fields("/schedules/nightly/pause")
    assert visitor.send("/schedules/nothing/pause", form).status_code == 404
    assert console_site.tell("schedules/nightly")["paused"] is False


def test_a_filter_that_cannot_be_used_is_kept(visitor: Visitor) -> None:
    answer = visitor.client.get("/console/schedules", params={"tenant": HOSTILE})
    assert answer.status_code in {200, 400}
    assert f'value="{escape(HOSTILE)}"' in answer.text
    assert "<script>alert" not in answer.text
