"""Keys over HTTP for admins: everybody's, with what became of them; and how one is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from operator import itemgetter
from typing import Annotated

import msgspec
from msgspec import Meta

from oncekey.api.admin.noting import RULE, note
from oncekey.api.admin.records import shape_of_key, shape_of_record, tenant_of
from oncekey.api.endpoint import Call, Endpoint, Parameter, Reply
from oncekey.api.pages import page_of
from oncekey.api.requests import BEFORE, LIMIT, before_in, limit_in, word_in
from oncekey.api.schema_parts import words
from oncekey.core.errors import InvalidInput, NotFound
from oncekey.core.ledger import Ledger
from oncekey.core.model import State, number_of
from oncekey.core.ports import Found, Query
from oncekey.core.scope import namespace_of
from oncekey.durable.shapes import Shape, json_of
from oncekey.webhooks.purging import check_free
from oncekey.webhooks.purging import purge as forget
from oncekey.wire.problem import Response
from oncekey.wire.replies import OK, ok

# Records come with their bodies, so that not many are held at a time.
_AT_A_TIME = 20


class Purge(msgspec.Struct, forbid_unknown_fields=True):
    """How to forget a key."""

    force: Annotated[
        bool, Meta(description="Also while it is running: a retry may then run beside it.")
    ] = False


async def list_all(call: Call) -> Response:
    limit = limit_in(call.query)
    query = Query(
        word_in(call.query, "state", State),
        call.query.get("prefix"),
        before=before_in(call.query, number_of, "no operation id"),
        endpoint=call.query.get("endpoint"),
    )
    found = await asyncio.to_thread(_page_of, call.ledger, _narrowed(query, call.query), limit + 1)
    return page_of("keys", "next_before", found, limit, dict, itemgetter("operation_id"))


async def show(call: Call) -> Response:
    return ok(json_of(shape_of_record(await _found(call))))


async def purge(call: Call, body: Purge) -> Response:
    found = await _found(call)
    record, scope = found.record, found.record.ref.scope
    if not body.force:
        check_free(found)
    await note(
        call,
        "key.purge",
        record.operation_id,
        tenant=tenant_of(scope.namespace),
        key=record.ref.key,
        endpoint=scope.endpoint,
        state=record.state.name.lower(),
        force=body.force,
    )
    forgotten = await asyncio.to_thread(forget, call.ledger, found, force=body.force)
    if record.ref not in forgotten:
        raise NotFound
    shape = {"operation_id": record.operation_id, "key": record.ref.key, "purged": len(forgotten)}
    return ok(json_of(shape))


async def _found(call: Call) -> Found:
    number = number_of(call.path["id"])
    found = None if number is None else await call.ledger.alook(number)
    if found is None:
        raise NotFound
    return found


def _page_of(ledger: Ledger, query: Query, count: int) -> list[Shape]:
    """Bodies are let go of as soon as they have been seen."""
    shapes: list[Shape] = []
    while len(shapes) < count:
        page = ledger.list(query._replace(limit=min(_AT_A_TIME, count - len(shapes))))
        shapes += map(shape_of_key, page)
        if not page:
            break
        query = query._replace(before=page[-1].record.id)
    return shapes


def _narrowed(query: Query, given: Mapping[str, str]) -> Query:
    """To those whose keys are meant: a whole namespace, or the beginning of some."""
    tenant, project, subject = (given.get(name) for name in ("tenant", "project", "subject"))
    if "namespace" in given:
        if tenant or project or subject:
            raise InvalidInput("namespace says it all; leave tenant, project and subject out")
        return query._replace(namespace=given["namespace"])
    if (project and not tenant) or (subject and not project):
        raise InvalidInput("a project is one of a tenant, and a subject of a project; send both")
    # What is wrong is told here; a part that fits nothing would only find nothing.
    namespace = namespace_of(
        tenant or "default", project or "default", subject or "client:anonymous"
    )
    if subject:
        return query._replace(namespace=namespace)
    if project:
        return query._replace(within=f"t-{tenant}:{project}:")
    return query._replace(within=f"t-{tenant}:") if tenant else query


_TEXT = {"type": "string"}

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/api/admin/keys",
        list_all,
        "List keys, newest first",
        {OK: Reply("A page of them, without what was answered.", "KeysPage")},
        access="admin",
        query=(
            Parameter("tenant", "Only of this tenant.", _TEXT),
            Parameter("project", "Only of this project of the tenant.", _TEXT),
            Parameter("subject", "Only of this subject of the project.", _TEXT),
            Parameter("namespace", "Only of this namespace, in place of the three.", _TEXT),
            Parameter("endpoint", "Only of this endpoint, as `POST /orders`.", _TEXT),
            Parameter("state", "Only in this state.", words(State)),
            Parameter("prefix", "Only keys that start with this.", _TEXT),
            LIMIT,
            BEFORE,
        ),
    ),
    Endpoint(
        "GET",
        "/api/admin/keys/{id}",
        show,
        "See a key by its operation id, with its answer and what happened when",
        {OK: Reply("As it is now.", "Record")},
        access="admin",
        problems=("not-found",),
    ),
    Endpoint(
        "POST",
        "/api/admin/keys/{id}/purge",
        purge,
        "Forget a key, so that the next request or delivery with it runs",
        {OK: Reply("It is forgotten.", "Purged")},
        policy="ACCEPTED",
        access="admin",
        body=Purge,
        problems=("not-found",),
        rule=RULE,
    ),
)
