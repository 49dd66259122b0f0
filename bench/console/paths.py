"""What is asked of a filled store: one line for each. Add a line, and it is measured."""

import re
from typing import NamedTuple
from urllib.parse import urlencode

from bench.console.rows import (
    COMMON_TENANT,
    RARE_ENDPOINT,
    RARE_NAME,
    RARE_TENANT,
    WEBHOOKS,
    Day,
)
from oncekey.core.execution import Sort, execution_id_of
from oncekey.core.identifier import text_of
from oncekey.core.model import operation_id_of


class Asked(NamedTuple):
    """`path` as it is sent, by an admin with a key who has signed in to the console as well."""

    name: str
    path: str
    status: int = 200


def paths_of(day: Day) -> list[Asked]:
    return [*_keys(day), *_work(day), *_rest(day), *_pages(day)]


def _keys(day: Day) -> list[Asked]:
    keys = day.amounts.keys
    deep = operation_id_of(day.number(0, keys // 2, keys))
    old = day.ref(3)
    tenant, project, subject = old.scope.namespace.removeprefix("t-").split(":", 2)
    whole = {"tenant": tenant, "project": project, "subject": subject}
    return [
        _list("keys"),
        _list("keys", limit=500),
        _list("keys", before=deep),
        _list("keys", tenant=COMMON_TENANT),
        _list("keys", tenant="t003"),
        _list("keys", tenant=RARE_TENANT),
        _list("keys", tenant=RARE_TENANT, before=deep),
        _list("keys", tenant=COMMON_TENANT, project="web", subject="user:42"),
        _list("keys", endpoint="POST /refunds"),
        _list("keys", endpoint=RARE_ENDPOINT),
        _list("keys", prefix="order-0999"),
        _list("keys", prefix="nothing-"),
        _list("keys", key="order-0000003"),
        _list("keys", **whole, endpoint=old.scope.endpoint, key=old.key),
        _list("keys", state="failed"),
        _list("keys", state="failed", before=deep),
        _list("keys", state="in_progress"),
        _list("keys", state="in_progress", tenant=RARE_TENANT),
        _list("keys", state="promise"),
        _list("keys", state="promise", prefix="nothing-"),
        _one("keys", operation_id_of(day.number(0, keys // 3, keys))),
        _one("keys", operation_id_of(day.number(1, 0, day.amounts.workflows))),
        _one("keys", operation_id_of(day.number(2, 7, day.amounts.promises))),
    ]


def _work(day: Day) -> list[Asked]:
    count = day.amounts.workflows
    deep = execution_id_of(Sort.WORKFLOW, day.number(1, count // 2, count))
    old = execution_id_of(Sort.WORKFLOW, day.number(1, 3, count))
    waiting = execution_id_of(Sort.WORKFLOW, day.number(1, 13, count))
    promise = f"pr_{day.number(2, 7, day.amounts.promises):016x}:payment"
    statuses = ("ready", "running", "waiting", "succeeded", "failed", "cancelled", "paused")
    return [
        _list("workflows"),
        _list("workflows", before=deep),
        _list("workflows", status="all"),
        _list("workflows", status="all", before=deep),
        *(_list("workflows", status=each) for each in statuses),
        _list("workflows", status="all", name="send_mail"),
        _list("workflows", status="all", name=RARE_NAME),
        _list("workflows", status="succeeded", name="nothing"),
        _list("workflows", status="failed", name="nothing"),
        _list("workflows", status="all", tenant=COMMON_TENANT),
        _list("workflows", status="waiting", tenant=COMMON_TENANT, name="nothing"),
        _list("workflows", status="all", tenant=RARE_TENANT),
        _list("workflows", tenant=COMMON_TENANT, key="start-4"),
        _one("workflows", old),
        _list("promises"),
        _list("promises", state="pending"),
        _list("promises", state="rejected"),
        _list("promises", state="cancelled", tenant=COMMON_TENANT),
        _list("promises", tenant=RARE_TENANT),
        _list("promises", tenant=COMMON_TENANT, key="pay-3"),
        _list("promises", key="pay-3"),
        _one("promises", promise),
        _one("promises", f"{waiting}:payment"),
    ]


def _rest(day: Day) -> list[Asked]:
    deep = text_of("dl_", day.number(5, day.amounts.deliveries // 2, day.amounts.deliveries))
    audits = text_of("au_", day.number(6, day.amounts.audits // 2, day.amounts.audits))
    return [
        _list("census"),
        _list("events"),
        _list("events", tenant=COMMON_TENANT),
        _list("events", tenant=RARE_TENANT),
        _list("events", topic="rare:happened"),
        _list("deliveries"),
        _list("deliveries", before=deep),
        _list("deliveries", verdict="accepted"),
        _list("deliveries", verdict="uncertain"),
        _list("deliveries", identifier="evt_3"),
        _list("deliveries", operation=operation_id_of(day.number(0, 11, day.amounts.keys))),
        _list("deliveries", tenant=COMMON_TENANT),
        _list("deliveries", webhook=WEBHOOKS[3], verdict="uncertain"),
        _list("webhooks"),
        _one("webhooks", WEBHOOKS[3]),
        _list(f"webhooks/{WEBHOOKS[3]}/deliveries"),
        _list("audit"),
        _list("audit", before=audits),
        _list("audit", tenant=COMMON_TENANT),
        _list("audit", actor="cli:rare"),
        _list("apikeys"),
        _list("retention"),
        _list("schedules"),
    ]


def _pages(day: Day) -> list[Asked]:
    """What a browser shows; each asks the API for some of the above."""
    keys, count = day.amounts.keys, day.amounts.workflows
    deep = operation_id_of(day.number(0, keys // 2, keys))
    workflow = execution_id_of(Sort.WORKFLOW, day.number(1, 13, count))
    delivery = text_of("dl_", day.number(5, 7, day.amounts.deliveries))
    return [
        _page(""),
        _page("keys"),
        _page("keys", before=deep),
        _page("keys", tenant=RARE_TENANT),
        _page("keys", prefix="nothing-"),
        _page("keys", key="order-0000003"),
        _page("keys", state="failed"),
        _page("keys", state="in_progress"),
        _page(f"keys/{operation_id_of(day.number(0, keys // 3, keys))}"),
        _page("workflows"),
        _page("workflows", status="all"),
        _page("workflows", status="waiting"),
        _page("workflows", status="all", name=RARE_NAME),
        _page(f"workflows/{workflow}"),
        _page("promises"),
        _page("promises", state="rejected"),
        _page(f"promises/{workflow}:payment"),
        _page("events"),
        _page("deliveries"),
        _page("deliveries", verdict="uncertain"),
        _page("deliveries", identifier="evt_3"),
        _page(f"deliveries/{delivery}"),
        _page("webhooks"),
        _page(f"webhooks/{WEBHOOKS[3]}"),
        _page("schedules"),
        _page("retention"),
        _page("apikeys"),
        _page("audit"),
        _page("audit", actor="cli:rare"),
    ]


def _page(what: str, **query: object) -> Asked:
    listed = _list(what, **query)
    name = re.sub(r"/\w+_.*", "/{id}", listed.name)
    path = listed.path.replace("/api/admin/", "/console/").rstrip("/")
    return Asked(f"page {name or 'overview'}", path)


def _list(what: str, **query: object) -> Asked:
    asked = f"?{urlencode(query)}" if query else ""
    shown = " ".join(f"{name}={value}" for name, value in query.items() if name != "before")
    deep = "deep" if "before" in query else ""
    name = " ".join(part for part in (what, shown, deep) if part)
    return Asked(name, f"/api/admin/{what}{asked}")


def _one(what: str, public_id: str, *, status: int = 200) -> Asked:
    return Asked(f"{what}/{{id}} {public_id[:3]}", f"/api/admin/{what}/{public_id}", status=status)
