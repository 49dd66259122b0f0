"""Webhooks: where providers deliver, with what secrets, what follows, and a way to try them."""

from __future__ import annotations

from typing import Any

from oncekey.console import wording
from oncekey.console.fields import Field
from oncekey.console.fields import Form as Question
from oncekey.console.lists import listed
from oncekey.console.visit import Form, Page, Place, Visit, Went, part

_RECENT = 10
_REPEATS = ("refuse", "allow")
_FOLLOWS = (
    'forward:/path, event:CEL, resolve:CEL or workflow:NAME; for instance resolve:"stripe:" + '
    "body.data.object.id"
)
_PROVIDERS = (
    "adyen, github, gocardless, paypal, shopify, slack, square, standard, stripe, svix, twilio, or "
    "one that the configuration declares."
)
_REPEATED = "A body that comes again under another identifier that is not signed."
_OWN = "The provider's secret"

_NEW_FIELDS = (
    Field("provider", "Provider", hint=_PROVIDERS, required=True),
    Field("then", "What follows a delivery", hint=_FOLLOWS, required=True),
    Field("tenant", "Tenant", hint="“default” when empty."),
    Field("project", "Project", hint="Empty for the tenant itself."),
    Field("label", "Label", hint="What it is for."),
    Field("repeats", "Repeated bodies", "choice", "refuse", _REPEATED, _REPEATS),
    Field("secret", _OWN, "secret", hint="Made, and shown once, when this is empty."),
)
_OVERLAP = "30m, 24h, 7d. With 0 they are refused at once, as after a leak."
_NEXT_FIELDS = (
    Field("overlap", "The others stay good for", value="24h", hint=_OVERLAP),
    Field("secret", _OWN, "secret", hint="Made, and shown once, when this is empty."),
)
_KIND = "Such as charge.succeeded, in a body that is made; or write the body."
_TRY_FIELDS = (
    Field("type", "What it says has happened", hint=_KIND),
    Field("body", "Body", "area", hint="Empty for the least that its provider sends."),
)

_ROTATING = (
    "The secrets there are stay good for a while, so that nothing is refused until the provider "
    "signs with the next one."
)
_DELETING = (
    "Its deliveries are refused from now on, and its secrets are gone. Another one has another "
    "address, which the provider must be told."
)
_TRYING = (
    "It is signed with the newest secret and taken as every delivery is: what follows is really "
    "done."
)


async def list_all(visit: Visit) -> Page:
    found = await listed(visit, "webhooks", _ask)
    return Page("webhooks.html", {"found": found, "filters": visit.query}, found.status)


async def _ask(visit: Visit) -> Any:
    return await visit.get("webhooks", **visit.asked("tenant", "before"))


async def show(visit: Visit) -> Page:
    webhook = await visit.get(_path(visit))
    recent = await visit.get(f"{_path(visit)}/deliveries", limit=_RECENT)
    values = {
        "webhook": webhook,
        "deliveries": recent["deliveries"],
        "more": recent["next_before"] is not None,
    }
    return Page("webhook.html", values)


# -- made and changed ------------------------------------------------------------------------


async def ask_to_create(_: Visit) -> Page:
    question = Question(
        title="Make a webhook",
        says=["It has an address of its own, which the next page shows, for the provider."],
        button="Make it",
        back="/webhooks",
        fields=_NEW_FIELDS,
    )
    return Page("form.html", {"form": question})


async def create(visit: Visit, form: Form) -> Page:
    names = ("provider", "then", "tenant", "project", "label", "repeats", "secret")
    done = await visit.act("webhooks", form.get("key", ""), _written(form, *names))
    return _told("The webhook is made", done.shape, again=done.again)


async def ask_to_change(visit: Visit) -> Page:
    webhook = await visit.get(_path(visit))
    question = Question(
        title="Change this webhook",
        says=["This is for deliveries that come from now on; other processes know it in seconds."],
        button="Change it",
        back=_place(visit),
        fields=[
            Field("then", "What follows a delivery", "text", webhook["then"], _FOLLOWS, (), True),
            Field("label", "Label", value=webhook["label"]),
            Field("repeats", "Repeated bodies", "choice", webhook["repeats"], _REPEATED, _REPEATS),
        ],
        facts=_facts(webhook, "id", "provider", "tenant", "project"),
    )
    return Page("form.html", {"form": question})


async def change(visit: Visit, form: Form) -> Went:
    body = {**_written(form, "then", "repeats"), "label": form.get("label", "").strip()}
    done = await visit.act(_path(visit), form.get("key", ""), body, method="PATCH")
    return Went(_place(visit), "webhook-changed", done.again)


async def ask_to_rotate(visit: Visit) -> Page:
    webhook = await visit.get(_path(visit))
    question = Question(
        title="Give this webhook its next secret?",
        says=[_ROTATING, "A secret that is made is shown once, on the next page."],
        button="Rotate it",
        back=_place(visit),
        fields=_NEXT_FIELDS,
        danger=True,
        facts=_facts(webhook, "id", "provider", "tenant", "label"),
    )
    return Page("form.html", {"form": question})


async def rotate(visit: Visit, form: Form) -> Page:
    body = _written(form, "overlap", "secret")
    done = await visit.act(f"{_path(visit)}/rotate", form.get("key", ""), body)
    return _told("The webhook has its next secret", done.shape, again=done.again)


async def ask_to_delete(visit: Visit) -> Page:
    webhook = await visit.get(_path(visit))
    question = Question(
        title="Delete this webhook?",
        says=[_DELETING, "What its deliveries did stays done, and their keys stay known."],
        button="Delete it",
        back=_place(visit),
        danger=True,
        facts=_facts(webhook, "id", "provider", "tenant", "project", "label", "then"),
    )
    return Page("form.html", {"form": question})


async def delete(visit: Visit, form: Form) -> Went:
    done = await visit.act(_path(visit), form.get("key", ""), method="DELETE")
    return Went("/webhooks", "webhook-deleted", done.again)


# -- tried -----------------------------------------------------------------------------------


async def ask_to_send(visit: Visit) -> Page:
    webhook = await visit.get(_path(visit))
    question = Question(
        title="Send a test delivery",
        says=[_TRYING],
        button="Send it",
        back=_place(visit),
        fields=_TRY_FIELDS,
        facts=_facts(webhook, "provider", "tenant", "label", "then"),
    )
    return Page("form.html", {"form": question})


async def send(visit: Visit, form: Form) -> Page:
    webhook = await visit.get(_path(visit))
    body = _written(form, "type")
    if form.get("body", "").strip():
        body["body"] = form["body"]
    done = await visit.act(f"{_path(visit)}/send", form.get("key", ""), body)
    values = {"webhook": webhook, "tried": done.shape, "again": done.again}
    return Page("webhook-tried.html", values)


def _told(title: str, webhook: dict[str, Any], *, again: bool) -> Page:
    return Page("webhook-made.html", {"title": title, "webhook": webhook, "again": again})


def _written(form: Form, *names: str) -> dict[str, str]:
    """Those fields that something was written into."""
    return {name: form[name].strip() for name in names if form.get(name, "").strip()}


def _facts(webhook: dict[str, Any], *names: str) -> dict[str, Any]:
    shown = {**webhook, "project": wording.project_of(webhook["project"])}
    return {name: shown[name] for name in names}


def _path(visit: Visit) -> str:
    return f"webhooks/{part(visit.path['id'])}"


def _place(visit: Visit) -> str:
    return f"/{_path(visit)}"


PLACES = (
    Place("/webhooks", list_all),
    Place("/webhooks/new", ask_to_create, create),
    Place("/webhooks/{id}", show),
    Place("/webhooks/{id}/change", ask_to_change, change),
    Place("/webhooks/{id}/rotate", ask_to_rotate, rotate),
    Place("/webhooks/{id}/send", ask_to_send, send),
    Place("/webhooks/{id}/delete", ask_to_delete, delete),
)
