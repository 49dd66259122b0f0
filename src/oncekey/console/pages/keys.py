"""Keys: found by whose they are and what they are called, seen with their answers, forgotten."""

from __future__ import annotations

from oncekey.console.fields import Field
from oncekey.console.fields import Form as Question
from oncekey.console.visit import Form, Page, Place, Visit, Went, part

FILTERS = ("tenant", "project", "subject", "endpoint", "key", "prefix", "state")
_STATES = ("", "in_progress", "succeeded", "failed")


async def list_all(visit: Visit) -> Page:
    wanted = visit.query.get("id", "").strip()
    if wanted:
        record = await visit.get(f"keys/{part(wanted)}")
        return Page(
            "keys.html", {"page": {"keys": [record], "next_before": None}, **_around(visit)}
        )
    page = await visit.get("keys", **visit.asked(*FILTERS, "before"))
    return Page("keys.html", {"page": page, **_around(visit)})


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


def _around(visit: Visit) -> dict[str, object]:
    return {"filters": visit.query, "states": _STATES}


PLACES = (
    Place("/keys", list_all),
    Place("/keys/{id}", show),
    Place("/keys/{id}/purge", ask_to_purge, purge),
)
