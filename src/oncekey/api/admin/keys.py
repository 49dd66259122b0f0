"""Keys over HTTP for admins: everybody's, with what became of them; and how one is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from oncekey.api.admin.finding import promise_with
from oncekey.api.admin.leads import deliveries_of, leads_of
from oncekey.api.admin.noting import RULE, note
from oncekey.api.admin.records import shape_of_key, shape_of_record, tenant_of
from oncekey.api.endpoint import Call, Endpoint, Parameter, Reply
from oncekey.api.pages import page_of
from oncekey.api.requests import BEFORE, LIMIT, before_in, limit_in, word_in
from oncekey.api.schema_parts import words
from oncekey.core.errors import InvalidInput, NotFound
from oncekey.core.identifier import millisecond_of
from oncekey.core.ledger import Ledger
from oncekey.core.looking import LOOK, Looked
from oncekey.core.model import Link, Record, Ref, State, number_of, operation_id_of
from oncekey.core.ports import Found, Query
from oncekey.core.scope import Scope, namespace_of
from oncekey.durable.shapes import json_of, time_of
from oncekey.webhooks.purging import check_free
from oncekey.webhooks.purging import purge as forget
from oncekey.wire.problem import Response
from oncekey.wire.replies import OK, ok


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
        limit=limit + 1,
        endpoint=call.query.get("endpoint"),
        key=call.query.get("key"),
        look=LOOK,
    )
    found = await _listed(call.ledger, _narrowed(query, call.query))
    to = found.to
    return page_of(
        "keys",
        "next_before",
        found,
        limit,
        shape_of_key,
        lambda each: each.record.operation_id,
        further=None if to is None else operation_id_of(to),
        beside={"looked_back_to": None if to is None else time_of(millisecond_of(to))},
    )


async def show(call: Call) -> Response:
    found = await _found(call)
    link = found.record.link
    state = None if link is None else await _state_of(call, link)
    shape = {
        **shape_of_record(found, state),
        "leads_to": await leads_of(call, found),
        "deliveries": await deliveries_of(call, found),
    }
    return ok(json_of(shape))


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


async def _listed(ledger: Ledger, query: Query) -> Looked[Found]:
    if query.namespace is None or query.endpoint is None or query.key is None:
        return await asyncio.to_thread(ledger.list, query)
    # There is one at most, and it is not looked for among others.
    found = await ledger.alook(Ref(Scope(query.namespace, query.endpoint), query.key))
    return Looked([found] if found is not None and _fits(found.record, query) else ())


def _fits(record: Record, query: Query) -> bool:
    return (
        query.state in {None, record.state}
        and record.ref.key.startswith(query.prefix or "")
        and (query.before is None or record.id < query.before)
    )


async def _state_of(call: Call, link: Link) -> str | None:
    """Of what a key stands for; None when that is gone."""
    try:
        if link.kind == "promise":
            return (await promise_with(call, link.id)).state.name.lower()
        return (await call.engine.execution(None, link.id)).status.name.lower()
    except NotFound:
        return None


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
        {OK: Reply("Those found among the newest, without what was answered.", "KeysPage")},
        access="admin",
        query=(
            Parameter("tenant", "Only of this tenant.", _TEXT),
            Parameter("project", "Only of this project of the tenant.", _TEXT),
            Parameter("subject", "Only of this subject of the project.", _TEXT),
            Parameter("namespace", "Only of this namespace, in place of the three.", _TEXT),
            Parameter("endpoint", "Only of this endpoint, as `POST /orders`.", _TEXT),
            Parameter("state", "Only in this state.", words(State)),
            Parameter("prefix", "Only keys that start with this.", _TEXT),
            Parameter("key", "Only this key.", _TEXT),
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
