"""Events: found, seen with their data, and published by hand."""

from __future__ import annotations

import json
from typing import Any

from oncekey.console.fields import VALUE_FIELDS, Field, Unreadable, value_in
from oncekey.console.fields import Form as Question
from oncekey.console.lists import listed
from oncekey.console.timeline import age_of
from oncekey.console.visit import Form, Page, Place, Visit, Went, part

FILTERS = ("tenant", "topic")


async def list_all(visit: Visit) -> Page:
    found = await listed(visit, "events", _ask)
    values = {"found": found, "filters": visit.query, "age_of": age_of}
    return Page("events.html", values, found.status)


async def _ask(visit: Visit) -> Any:
    return await visit.get("events", **visit.asked(*FILTERS, "before"))


async def show(visit: Visit) -> Page:
    return Page("event.html", {"event": await visit.get(f"events/{part(visit.path['id'])}")})


async def ask_to_publish(visit: Visit) -> Page:
    """Of the tenant and topic that somebody came with, as from a workflow that waits."""
    back, facts = await _wait_behind(visit)
    fields = (
        Field("tenant", "Tenant", value=visit.query.get("tenant", "default"), required=True),
        Field(
            "topic",
            "Topic",
            value=visit.query.get("topic", ""),
            hint="What workflows wait for, as shipment:created.",
            required=True,
        ),
        VALUE_FIELDS[0]._replace(label="Kind of data"),
        VALUE_FIELDS[1]._replace(
            label="Data", hint="As JSON, or the text or number itself. Conditions see it as input."
        ),
        Field("headers", "Headers", "area", hint="A JSON object of texts, or nothing."),
    )
    form = Question(
        title="Publish an event",
        says=["Every workflow that waits for it, and whose condition it fits, goes on with it."],
        button="Publish it",
        back=back,
        fields=fields,
        facts=facts,
    )
    return Page("form.html", {"form": form})


async def _wait_behind(visit: Visit) -> tuple[str, dict[str, str]]:
    """The workflow that somebody came from, and what an event must fit there."""
    workflow = visit.query.get("workflow", "")
    journal = workflow and await visit.find(f"workflows/{part(workflow)}/journal", limit=1)
    if not journal:
        return "/events", {}
    topic = visit.query.get("topic", "")
    wanted = [each["condition"] for each in journal["waits"] if each["topic"] == topic]
    conditions = " or ".join(filter(None, wanted))
    facts = {"who waits": workflow, "condition to satisfy": conditions or "none"}
    return f"/workflows/{part(workflow)}", facts


async def publish(visit: Visit, form: Form) -> Went:
    body = {
        "tenant": form.get("tenant", "").strip(),
        "topic": form.get("topic", "").strip(),
        "data": value_in(form),
        "headers": _headers_in(form),
    }
    done = await visit.act("events", form.get("key", ""), body)
    said = "published" if done.shape["matched"] else "published-to-nobody"
    return Went(f"/events/{part(done.shape['event_id'])}", said, done.again)


def _headers_in(form: Form) -> dict[str, str] | None:
    text = form.get("headers", "").strip()
    if not text:
        return None
    try:
        headers = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable("headers", f"The headers are not JSON: {error}.") from error
    if not isinstance(headers, dict) or not all(isinstance(each, str) for each in headers.values()):
        raise Unreadable("headers", "The headers are a JSON object whose values are texts.")
    return headers


PLACES = (
    Place("/events", list_all),
    Place("/events/publish", ask_to_publish, publish),
    Place("/events/{id}", show),
)
