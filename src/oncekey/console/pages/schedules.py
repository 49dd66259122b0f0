"""Schedules: what happens by itself, when it happens next, stopped and let go on."""

from __future__ import annotations

from typing import Any

from oncekey.console import links
from oncekey.console.fields import Form as Question
from oncekey.console.lists import listed
from oncekey.console.visit import Form, Page, Place, Visit, Went, part


async def list_all(visit: Visit) -> Page:
    found = await listed(visit, "schedules", _ask)
    return Page("schedules.html", {"found": found, "filters": visit.query}, found.status)


async def _ask(visit: Visit) -> Any:
    page = await visit.get("schedules", **visit.asked("tenant", "after"))
    return {**page, "next_before": page["next_after"]}


async def show(visit: Visit) -> Page:
    schedule = await visit.get(_path(visit))
    last = schedule["last_outcome"]
    place = links.place_of(last["text"]) if last else None
    started = await visit.find(place[1:]) if place and place.startswith("/workflows/") else None
    return Page("schedule.html", {"schedule": schedule, "place": place, "started": started})


async def ask_to_pause(visit: Visit) -> Page:
    schedule = await visit.get(_path(visit))
    question = Question(
        title="Pause this schedule?",
        says=[
            "No tick is begun from now on; one that runs goes on to its end.",
            "Ticks that fall into the pause are not made up for when it is resumed.",
        ],
        button="Pause it",
        back=_place(visit),
        facts=_facts(schedule),
    )
    return Page("form.html", {"form": question})


async def pause(visit: Visit, form: Form) -> Went:
    done = await visit.act(f"{_path(visit)}/pause", form.get("key", ""))
    return Went(_place(visit), "schedule-paused", done.again)


async def ask_to_resume(visit: Visit) -> Page:
    schedule = await visit.get(_path(visit))
    question = Question(
        title="Resume this schedule?",
        says=["It goes on with the first tick after now; those of the pause are left out."],
        button="Resume it",
        back=_place(visit),
        facts=_facts(schedule),
    )
    return Page("form.html", {"form": question})


async def resume(visit: Visit, form: Form) -> Went:
    done = await visit.act(f"{_path(visit)}/resume", form.get("key", ""))
    return Went(_place(visit), "schedule-resumed", done.again)


def _facts(schedule: dict[str, Any]) -> dict[str, Any]:
    return {name: schedule.get(name) for name in ("id", "tenant", "timing", "workflow", "url")}


def _path(visit: Visit) -> str:
    return f"schedules/{part(visit.path['id'])}"


def _place(visit: Visit) -> str:
    return f"/{_path(visit)}"


PLACES = (
    Place("/schedules", list_all),
    Place("/schedules/{id}", show),
    Place("/schedules/{id}/pause", ask_to_pause, pause),
    Place("/schedules/{id}/resume", ask_to_resume, resume),
)
