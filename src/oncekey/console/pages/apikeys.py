"""API keys: who may call, made with a secret that is told once, and refused from then on."""

from __future__ import annotations

import re
from typing import Any

from oncekey.console.fields import Field
from oncekey.console.fields import Form as Question
from oncekey.console.lists import listed
from oncekey.console.visit import Form, Page, Place, Refused, Visit, Went, part

_ID = re.compile(r"ak_[0-7][0-9a-f]{15}")
_ROLES = ("caller", "admin")
_ROLE = "A caller asks for work, an admin looks after all of it, here as well."
_FIELDS = (
    Field("role", "Role", "choice", "caller", _ROLE, _ROLES),
    Field("tenant", "Tenant", hint="“default” when empty; an admin has none."),
    Field("project", "Project", hint="Empty for the tenant itself."),
    Field("subject", "Subject", hint="type:id, such as user:alice; may be empty."),
    Field("label", "Label", hint="What it is for."),
    Field("expires_in", "Good for", hint="30m, 24h or 90d; without an end when empty."),
)


async def list_all(visit: Visit) -> Page:
    found = await listed(visit, "api_keys", _ask)
    own = visit.session.caller.key_id
    values = {"found": found, "filters": visit.query, "own": own}
    return Page("apikeys.html", values, found.status)


async def _ask(visit: Visit) -> Any:
    return await visit.get("apikeys", **visit.asked("tenant", "before"))


async def show(visit: Visit) -> Page:
    own = visit.session.caller.key_id
    return Page("apikey.html", {"key": await _found(visit), "own": own})


async def ask_to_create(_: Visit) -> Page:
    question = Question(
        title="Make an API key",
        says=["Its secret is shown once, on the next page."],
        button="Make it",
        back="/apikeys",
        fields=_FIELDS,
    )
    return Page("form.html", {"form": question})


async def create(visit: Visit, form: Form) -> Page:
    names = ("role", "tenant", "project", "subject", "label", "expires_in")
    given = {name: form.get(name, "").strip() for name in names}
    body = {name: value for name, value in given.items() if value}
    done = await visit.act("apikeys", form.get("key", ""), body)
    return Page("apikey-made.html", {"key": done.shape, "again": done.again})


async def ask_to_revoke(visit: Visit) -> Page:
    found = await _found(visit)
    says = ["Whoever calls with it is refused from now on. This cannot be taken back."]
    if found["id"] == visit.session.caller.key_id:
        says.append(
            "This is the key you signed in with: you are signed out at once, and need another one "
            "to come back."
        )
    question = Question(
        title="Revoke this API key?",
        says=says,
        button="Revoke it",
        back=f"/apikeys/{part(found['id'])}",
        danger=True,
        facts={name: found[name] for name in ("id", "role", "tenant", "subject", "label", "state")},
    )
    return Page("form.html", {"form": question})


async def revoke(visit: Visit, form: Form) -> Went:
    path = f"apikeys/{part(visit.path['id'])}"
    done = await visit.act(f"{path}/revoke", form.get("key", ""))
    return Went(f"/{path}", "revoked", done.again)


async def _found(visit: Visit) -> dict[str, Any]:
    wanted = visit.path["id"]
    if _ID.fullmatch(wanted):
        # The newest of those below the next one.
        above = f"ak_{int(wanted[3:], 16) + 1:016x}"
        for each in (await visit.get("apikeys", before=above, limit=1))["api_keys"]:
            if each["id"] == wanted:
                return dict(each)
    raise Refused(404, "There is no such API key", "Those there are stand in the list.")


PLACES = (
    Place("/apikeys", list_all),
    Place("/apikeys/new", ask_to_create, create),
    Place("/apikeys/{id}", show),
    Place("/apikeys/{id}/revoke", ask_to_revoke, revoke),
)
