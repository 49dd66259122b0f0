"""Promises: found, seen with who waits and who settled them, resolved and rejected by hand."""

from __future__ import annotations

from typing import Any

from oncekey.console.fields import VALUE_FIELDS, Field, value_in
from oncekey.console.fields import Form as Question
from oncekey.console.lists import listed
from oncekey.console.timeline import age_of, failure_of
from oncekey.console.visit import Done, Form, Page, Place, Visit, Went, part

FILTERS = ("tenant", "state", "key")
_STATES = ("", "pending", "resolved", "rejected", "timed_out", "cancelled")
# What somebody writes as a reason is a text, mostly.
_REASON_FIELDS = (
    VALUE_FIELDS[0]._replace(label="Kind of reason", value="text"),
    VALUE_FIELDS[1]._replace(label="Reason"),
)


async def list_all(visit: Visit) -> Page:
    found = await listed(visit, "promises", _ask)
    values = {"found": found, "filters": visit.query, "states": _STATES, "age_of": age_of}
    return Page("promises.html", values, found.status)


async def _ask(visit: Visit) -> Any:
    return await visit.get("promises", **visit.asked(*FILTERS, "before"))


async def show(visit: Visit) -> Page:
    promise = await visit.get(_path(visit))
    failure = failure_of(promise["error"]) if "error" in promise else None
    return Page("promise.html", {"promise": promise, "failure": failure, "age_of": age_of})


async def ask_to_resolve(visit: Visit) -> Page:
    says = ["The promise gets this value for good, and whoever waits for it goes on with it."]
    return await _question(visit, "Resolve this promise?", says, "Resolve it", VALUE_FIELDS)


async def resolve(visit: Visit, form: Form) -> Went:
    body = {"value": value_in(form)}
    done = await visit.act(f"{_path(visit)}/resolve", form.get("key", ""), body)
    return _went(visit, done, "resolved")


async def ask_to_reject(visit: Visit) -> Page:
    says = ["It is rejected for good: whoever waits for it gets an error with this reason."]
    title, button = "Reject this promise?", "Reject it"
    return await _question(visit, title, says, button, _REASON_FIELDS, danger=True)


async def reject(visit: Visit, form: Form) -> Went:
    body = {"error": value_in(form)}
    done = await visit.act(f"{_path(visit)}/reject", form.get("key", ""), body)
    return _went(visit, done, "rejected")


def _went(visit: Visit, done: Done, said: str) -> Went:
    # The first to settle it counts, and this may have been somebody else.
    settled = "settled-before" if done.shape["already_resolved"] else said
    return Went(_place(visit.path["id"]), settled, done.again)


async def _question(
    visit: Visit,
    title: str,
    says: list[str],
    button: str,
    fields: tuple[Field, ...],
    *,
    danger: bool = False,
) -> Page:
    promise = await visit.get(_path(visit))
    waiter = promise["waiter"]
    if promise["state"] != "pending":
        state = promise["state"].replace("_", " ")
        says = [f"It is {state} already, and stays as it is: nothing can be changed."]
    form = Question(
        title=title,
        says=says,
        button=button,
        back=_place(visit.path["id"]),
        fields=fields,
        danger=danger,
        facts={
            **{name: promise[name] for name in ("name", "key", "tenant", "state")},
            _waiting(promise): None if waiter is None else f"{waiter['name']} {waiter['id']}",
        },
    )
    return Page("form.html", {"form": form})


def _waiting(promise: dict[str, Any]) -> str:
    return "who waits" if promise["state"] == "pending" else "who waited"


def _path(visit: Visit) -> str:
    return f"promises/{part(visit.path['id'])}"


def _place(promise_id: str) -> str:
    return f"/promises/{part(promise_id)}"


# The name of a promise, and so its id, may hold a slash and any word: verbs stand before it.
PLACES = (
    Place("/promises", list_all),
    Place("/promises/resolve/{id:path}", ask_to_resolve, resolve),
    Place("/promises/reject/{id:path}", ask_to_reject, reject),
    Place("/promises/{id:path}", show),
)
