"""Keys: found by whose they are and what they are called, seen with their answers, forgotten."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from oncekey.console.fields import Field
from oncekey.console.fields import Form as Question
from oncekey.console.visit import Form, Page, Place, Refused, Visit, Went, part

FILTERS = ("tenant", "project", "subject", "endpoint", "key", "prefix", "state")
_STATES = ("", "in_progress", "succeeded", "failed")
_FULL = 50
# One page looks no longer than this for what is rare, and then tells how far back it has looked.
_PATIENCE = 0.15


async def list_all(visit: Visit) -> Page:
    problem = None
    try:
        found = await _found(visit)
    except Refused as refused:
        if refused.status >= 500:
            raise
        found = {"keys": [], "next_before": None, "looked_back_to": None}
        problem = None if refused.status == 404 else refused
    values = {"page": found, "filters": visit.query, "states": _STATES, "problem": problem}
    return Page("keys.html", values, 200 if problem is None else problem.status)


async def _found(visit: Visit) -> dict[str, Any]:
    """The one of an operation id, or a page of those that fit."""
    wanted = visit.query.get("id", "").strip()
    if wanted:
        record = await visit.get(f"keys/{part(wanted)}")
        return {"keys": [record], "next_before": None, "looked_back_to": None}
    until = perf_counter() + _PATIENCE
    keys: list[Any] = []
    before = visit.query.get("before", "").strip()
    while True:
        wanting = _FULL - len(keys)
        asked = {**visit.asked(*FILTERS), "before": before, "limit": str(wanting)}
        page: dict[str, Any] = await visit.get("keys", **asked)
        keys += page["keys"]
        before = page["next_before"]
        if not before or len(keys) >= _FULL or perf_counter() > until:
            return {**page, "keys": keys}


async def show(visit: Visit) -> Page:
    return Page("key.html", {"record": await visit.get(_path(visit))})


async def ask_to_purge(visit: Visit) -> Page:
    record = await visit.get(_path(visit))
    runs = record["state"] == "in_progress"
    says = ["What was answered is forgotten, and the next request or delivery with this key runs."]
    if runs:
        says.append("It is running: a retry may then run beside it, so this has to be forced.")
    question = Question(
        title="Forget this key?",
        says=says,
        button="Forget it",
        back=f"/keys/{part(record['operation_id'])}",
        fields=[Field("force", "Also while it is running", "flag")] if runs else [],
        danger=True,
        facts={name: record[name] for name in ("key", "endpoint", "namespace", "state")},
    )
    return Page("form.html", {"form": question})


async def purge(visit: Visit, form: Form) -> Went:
    body = {"force": form.get("force") == "on"}
    done = await visit.act(f"{_path(visit)}/purge", form.get("key", ""), body)
    return Went("/keys", "purged", done.again)


def _path(visit: Visit) -> str:
    return f"keys/{part(visit.path['id'])}"


PLACES = (
    Place("/keys", list_all),
    Place("/keys/{id}", show),
    Place("/keys/{id}/purge", ask_to_purge, purge),
)
