"""Keys: found by whose they are and what they are called, seen with their answers, forgotten."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from oncekey.console.fields import Field
from oncekey.console.fields import Form as Question
from oncekey.console.lists import Listed
from oncekey.console.visit import Form, Page, Place, Refused, Visit, Went, part

FILTERS = ("tenant", "project", "subject", "endpoint", "key", "prefix", "state")
_STATES = ("", "in_progress", "succeeded", "failed")
_FULL = 50
# One page looks no longer than this for what is rare, and then tells how far back it has looked.
_PATIENCE = 0.08


async def list_all(visit: Visit) -> Page:
    found = await _listed(visit)
    values = {"found": found, "filters": visit.query, "states": _STATES}
    return Page("keys.html", values, found.status)


async def _listed(visit: Visit) -> Listed:
    """The one of an operation id, or a page of those that fit."""
    try:
        wanted = visit.query.get("id", "").strip()
        if wanted:
            return Listed([await visit.get(f"keys/{part(wanted)}")])
        return await _found(visit)
    except Refused as refused:
        if refused.status >= 500:
            raise
        return Listed([], problem=None if refused.status == 404 else refused)


async def _found(visit: Visit) -> Listed:
    until, before = perf_counter() + _PATIENCE, visit.query.get("before", "").strip()
    keys: list[Any] = []
    while True:
        limit = str(_FULL - len(keys))
        page = await visit.get("keys", **visit.asked(*FILTERS), before=before, limit=limit)
        keys += page["keys"]
        before = page["next_before"]
        if not before or len(keys) >= _FULL or perf_counter() > until:
            return Listed(keys, before, page["looked_back_to"])


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
