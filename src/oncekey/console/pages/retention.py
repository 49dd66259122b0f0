"""Retention: how long outcomes are kept, by class, and who said so."""

from __future__ import annotations

from typing import Any

from oncekey.console import wording
from oncekey.console.fields import Field, Unreadable
from oncekey.console.fields import Form as Question
from oncekey.console.visit import Form, Page, Place, Refused, Visit, Went, part
from oncekey.core.errors import InvalidInput
from oncekey.core.retention import duration_of, seconds_of

_FROM_NOW_ON = (
    "This is for outcomes that are stored from now on, in every process. What is stored already "
    "expires when it was to expire."
)


async def list_all(visit: Visit) -> Page:
    found = (await visit.get("retention"))["classes"]
    classes = [{**each, "kept": duration_of(each["seconds"])} for each in found]
    return Page("retention.html", {"classes": classes})


async def ask_to_set(visit: Visit) -> Page:
    found = await _found(visit)
    kept = duration_of(found["seconds"])
    question = Question(
        title=f"How long are outcomes of {found['class']} kept?",
        says=[
            _FROM_NOW_ON,
            f"Kept shorter than now ({kept}), a retry that comes later than that runs again.",
        ],
        button="Set it",
        back="/retention",
        fields=[
            Field("kept", "Kept for", value=kept, hint="30m, 24h, 7d or 1d12h.", required=True),
            Field("shorter", "Also when that is shorter than now", "flag"),
        ],
        danger=True,
        facts={
            "class": found["class"],
            "kept now": kept,
            "that is from": wording.origin_of(found["from"]),
        },
    )
    return Page("form.html", {"form": question})


async def change(visit: Visit, form: Form) -> Went:
    found = await _found(visit)
    kept = form.get("kept", "").strip()
    if form.get("shorter") != "on" and _is_shorter(kept, found["seconds"]):
        raise Unreadable(
            "shorter",
            f"{kept} is shorter than what is in force, {duration_of(found['seconds'])}: retries "
            "that come later than that run again. Tick the box if this is meant.",
        )
    path = f"retention/{part(found['class'])}"
    done = await visit.act(path, form.get("key", ""), {"kept": kept}, method="PUT")
    return Went("/retention", "retention-set", done.again)


def _is_shorter(kept: str, than: float) -> bool:
    try:
        return seconds_of(kept) < than
    except InvalidInput:
        # The API says what is wrong with it.
        return False


async def _found(visit: Visit) -> dict[str, Any]:
    for each in (await visit.get("retention"))["classes"]:
        if each["class"] == visit.path["class"]:
            return dict(each)
    raise Refused(404, "There is no such retention class", "Those there are stand in the list.")


PLACES = (
    Place("/retention", list_all),
    Place("/retention/{class}", ask_to_set, change),
)
