"""The OpenAPI document, made of the table of endpoints that the router reads too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import msgspec

from oncekey.api.endpoint import Endpoint
from oncekey.api.schema_parts import Schema
from oncekey.api.schemas import SCHEMAS
from oncekey.wire.openapi import PROBLEM, by_status, header, key_parameter, problem_response
from oncekey.wire.problem import codes
from oncekey.wire.rule import Rule

Part = dict[str, Any]

_PARAMETER = re.compile(r"\{(\w+)(:path)?\}")
_REF = "#/components/schemas/{name}"
_DESCRIPTIONS = {
    "tenant": "The caller's own tenant; any other is not found.",
    "id": "As an answer told it, such as `wf_` or `tk_` and 16 hexadecimal digits.",
    "name": "As it was given in the code.",
    "address": "`id:` and the id of a promise, or `key:` and its key.",
    "class": "The name of a retention class.",
}
_SUMMARY = "Workflows, tasks, promises and events, each of which may be retried."
_INFO = {
    "version": version("oncekey"),
    "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
}
_SECURITY: Part = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}
_KINDS = {"caller": "`ok_…`", "admin": "of an admin, `oka_…`"}


def document_of(
    endpoints: Sequence[Endpoint],
    schemas: Mapping[str, Schema] = SCHEMAS,
    *,
    title: str = "OnceKey",
    summary: str = _SUMMARY,
) -> Part:
    paths: dict[str, Part] = {}
    for each in endpoints:
        path = _PARAMETER.sub(r"{\1}", each.path)
        paths.setdefault(path, {})[each.method.lower()] = _operation_of(each)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "summary": summary, **_INFO},
        "paths": paths,
        "components": {
            "schemas": _schemas_of(endpoints, schemas),
            "securitySchemes": _schemes_of(endpoints),
        },
    }


def problems_of(endpoint: Endpoint) -> list[str]:
    """The codes of every problem that an endpoint may answer with."""
    found = {"internal-error", "ledger-unavailable", "invalid-input", *endpoint.problems}
    if not endpoint.is_open:
        found |= {"unauthorized"}
    if "{" in endpoint.path:
        # What no path can hold is not found, whatever it would have named.
        found |= {"not-found"}
    if endpoint.body is not None:
        found |= {"request-incomplete", "payload-too-large"}
    if endpoint.rule is not None:
        found |= {"claim-lost", "request-too-large"}
        found |= {"request-in-progress", "idempotency-key-reused"}
    match endpoint.policy:
        case "PROHIBITED":
            found |= {"idempotency-key-prohibited"}
        case "ACCEPTED":
            found |= {"idempotency-key-invalid"}
        case "REQUIRED_A":
            found |= {"idempotency-key-invalid", "idempotency-key-missing"}
    return [code for code in codes() if code in found]


def _operation_of(endpoint: Endpoint) -> Part:
    operation: Part = {
        "operationId": _id_of(endpoint),
        "summary": endpoint.summary,
        "security": [] if endpoint.is_open else [{name: []} for name in _SECURITY],
        "x-idempotency-policy": endpoint.policy,
        "parameters": [*_path_parameters(endpoint), *_other_parameters(endpoint)],
        "responses": _responses_of(endpoint),
    }
    if endpoint.body is not None:
        schema = {"$ref": _REF.format(name=endpoint.body.__name__)}
        operation["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    return operation


def _id_of(endpoint: Endpoint) -> str:
    words = _PARAMETER.sub(r"by-\1", endpoint.path).replace("/", " ").replace(".", " ").split()
    kept = [word for word in words if word not in {"api", "tenants", "by-tenant"}]
    return "-".join([endpoint.method.lower(), *kept])


def _path_parameters(endpoint: Endpoint) -> Iterable[Part]:
    for found in _PARAMETER.finditer(endpoint.path):
        yield {
            "name": found[1],
            "in": "path",
            "required": True,
            "description": _DESCRIPTIONS[found[1]],
            "schema": {"type": "string"},
        }


def _other_parameters(endpoint: Endpoint) -> Iterable[Part]:
    for name, description, schema in endpoint.query:
        yield {"name": name, "in": "query", "description": description, "schema": dict(schema)}
    if endpoint.policy != "PROHIBITED":
        yield key_parameter(Rule())


def _responses_of(endpoint: Endpoint) -> Part:
    responses: Part = {}
    for status, (description, name) in endpoint.replies.items():
        schema = {"$ref": _REF.format(name=name)}
        responses[str(status)] = {
            "description": description,
            "content": {"application/json": {"schema": schema}},
        }
        if endpoint.policy != "PROHIBITED":
            mark = header("`true` when this is the answer to an earlier request")
            responses[str(status)]["headers"] = {"Idempotent-Replayed": mark}
    for status, types in by_status(problems_of(endpoint)).items():
        responses[str(status)] = problem_response(
            status, types, {"$ref": _REF.format(name="Problem")}
        )
    return responses


def _schemas_of(endpoints: Iterable[Endpoint], schemas: Mapping[str, Schema]) -> Part:
    bodies = list(dict.fromkeys(each.body for each in endpoints if each.body is not None))
    _, components = msgspec.json.schema_components(bodies, ref_template=_REF)
    assert not components.keys() & schemas.keys()
    problem = {**PROBLEM, "properties": {**PROBLEM["properties"], **_MEMBERS}}
    return {**components, **schemas, "Problem": problem}


def _schemes_of(endpoints: Iterable[Endpoint]) -> Part:
    kinds = " or ".join(sorted({_KINDS[each.access] for each in endpoints if not each.is_open}))
    return {
        name: {**scheme, "description": f"An API key {kinds}."}
        for name, scheme in _SECURITY.items()
    }


_MEMBERS = {
    "existing_promise_id": {"type": "string", "description": "Of `key-conflict`."},
    "state": {"type": "string", "description": "Of `promise-over`."},
}
