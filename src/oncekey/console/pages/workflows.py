"""Workflows and tasks: found, seen with their journals drawn, cancelled, resumed and forked."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from oncekey.console.fields import Field, Unreadable
from oncekey.console.fields import Form as Question
from oncekey.console.lists import Listed, listed
from oncekey.console.timeline import age_of, failure_of, timeline_of
from oncekey.console.visit import Form, Page, Place, Refused, Visit, Went, part

FILTERS = ("tenant", "name", "sort", "key")
STUCK = "stuck"
"""Those that need somebody: failed or paused."""
_LIVE = ("ready", "running", "waiting")
_STATUSES = ("", STUCK, *_LIVE, "paused", "succeeded", "failed", "cancelled")
_STEPS = 100


# -- many ----------------------------------------------------------------------------------


async def list_all(visit: Visit) -> Page:
    found: Listed = await listed(visit, "workflows", _ask)
    values = {
        "found": found,
        "filters": visit.query,
        "statuses": _STATUSES,
        "age_of": age_of,
        "failure_of": failure_of,
    }
    return Page("workflows.html", values, found.status)


async def _ask(visit: Visit) -> Any:
    status = visit.query.get("status", "")
    asked = visit.asked(*FILTERS, "before")
    # The API leaves out what is well unless it is asked for.
    wanted = None if status == STUCK else status or "all"
    return await visit.get("workflows", **asked, status=wanted)


# -- one -----------------------------------------------------------------------------------


async def show(visit: Visit) -> Page:
    workflow, journal, after = await _look(visit)
    values = {
        "workflow": workflow,
        "journal": journal,
        "after": after,
        "timeline": timeline_of(workflow, journal, datetime.now(UTC)),
        "steps_a_page": _STEPS,
        "failure": failure_of(workflow["error"]) if "error" in workflow else None,
        "can": _actions_on(workflow),
        "age_of": age_of,
    }
    return Page("workflow.html", values)


async def _look(visit: Visit) -> tuple[Any, Any, int]:
    """With the page of its journal that is asked for, or else the last: there it goes on."""
    workflow = await visit.get(_path(visit))
    place = f"{_path(visit)}/journal"
    asked = visit.query.get("after", "")
    if asked:
        return workflow, await visit.get(place, after=asked, limit=_STEPS), int(asked)
    journal = await visit.get(place, limit=_STEPS)
    if journal["next_after"] is None:
        return workflow, journal, 0
    after = (journal["count"] - 1) // _STEPS * _STEPS
    return workflow, await visit.get(place, after=after, limit=_STEPS), after


def _actions_on(workflow: Any) -> list[str]:
    """What makes sense as it is now."""
    status = workflow["status"]
    resume = ["resume"] if status == "paused" else []
    cancel = ["cancel"] if status in {*_LIVE, "paused"} else []
    return [*resume, "fork", *cancel]


# -- what can be done ----------------------------------------------------------------------


async def ask_to_cancel(visit: Visit) -> Page:
    workflow = await visit.get(_path(visit))
    says = [
        "It ends now and for good, and what it waits for is cancelled.",
        "A step that is under way is not undone.",
        "Others who wait for its end are told that it was cancelled.",
    ]
    return _question(workflow, f"Cancel this {workflow['kind']}?", says, "Cancel it", danger=True)


async def cancel(visit: Visit, form: Form) -> Went:
    done = await visit.act(f"{_path(visit)}/cancel", form.get("key", ""))
    return Went(_place(visit.path["id"]), "cancelled", done.again)


async def ask_to_resume(visit: Visit) -> Page:
    workflow = await visit.get(_path(visit))
    says = [
        "It goes on where it stopped: what is finished is not repeated.",
        "What failed is tried again; if the reason for it is still there, it is paused again.",
    ]
    return _question(workflow, f"Resume this {workflow['kind']}?", says, "Resume it")


async def resume(visit: Visit, form: Form) -> Went:
    done = await visit.act(f"{_path(visit)}/resume", form.get("key", ""))
    return Went(_place(visit.path["id"]), "resumed", done.again)


async def ask_to_fork(visit: Visit) -> Page:
    workflow = await visit.get(_path(visit))
    says = [
        "A new one begins with the results of all steps before the one that is chosen.",
        "That step and everything after it are done anew, with all their effects.",
    ]
    if workflow["status"] in {*_LIVE, "paused"}:
        says.append("The one it is forked from is not over, and may go on: cancel it if it should.")
    field = await _step_field(visit, visit.query.get("from_step", "1"))
    title = f"Fork this {workflow['kind']}?"
    return _question(workflow, title, says, "Fork it", fields=[field])


async def fork(visit: Visit, form: Form) -> Went:
    # A choice is a number with the name of its step behind it.
    text = form.get("from_step", "").partition(":")[0].strip()
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 10):
        raise Unreadable("from_step", "The number of a step is wanted.")
    body = {"from_step": int(text)}
    try:
        done = await visit.act(f"{_path(visit)}/fork", form.get("key", ""), body)
    except Refused as refused:
        # The word of the API is not one of this page.
        refused.detail = refused.detail.replace("from_step", "the step")
        raise
    return Went(_place(done.shape["workflow_id"]), "forked", done.again)


async def _step_field(visit: Visit, number: str) -> Field:
    """A choice between all steps; in a journal of many pages, the number of one."""
    field = Field("from_step", "From which step", hint="1 does everything anew.", required=True)
    journal = await visit.get(f"{_path(visit)}/journal", limit=_STEPS)
    if journal["next_after"] is not None:
        hint = "Its number in the journal; 1 does everything anew."
        return field._replace(kind="number", value=number, hint=hint)
    choices = [f"{each['from_step']}: {each['name']}" for each in journal["steps"]]
    choices.append(f"{journal['count'] + 1}: what comes after all of them")
    chosen = next((each for each in choices if each.startswith(f"{number}:")), choices[0])
    return field._replace(kind="choice", value=chosen, choices=choices)


def _question(workflow: Any, title: str, says: list[str], button: str, **more: Any) -> Page:
    form = Question(
        title=title,
        says=says,
        button=button,
        back=_place(workflow["id"]),
        facts={name: workflow[name] for name in ("id", "name", "tenant", "key", "status")},
        **more,
    )
    return Page("form.html", {"form": form})


def _path(visit: Visit) -> str:
    return f"workflows/{part(visit.path['id'])}"


def _place(execution_id: str) -> str:
    return f"/workflows/{part(execution_id)}"


PLACES = (
    Place("/workflows", list_all),
    Place("/workflows/{id}", show),
    Place("/workflows/{id}/cancel", ask_to_cancel, cancel),
    Place("/workflows/{id}/resume", ask_to_resume, resume),
    Place("/workflows/{id}/fork", ask_to_fork, fork),
)
