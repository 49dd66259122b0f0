"""The OpenAPI documents are valid, and say what the tables of endpoints say."""

import re
from typing import Any

import msgspec
import pytest
from openapi_spec_validator import validate

from oncekey.api.admin.schemas import SCHEMAS as ADMIN_SCHEMAS
from oncekey.api.admin.table import ENDPOINTS as ADMIN
from oncekey.api.admin.table import document_of_admin
from oncekey.api.endpoint import Endpoint
from oncekey.api.openapi import document_of, problems_of
from oncekey.api.schemas import SCHEMAS
from oncekey.api.table import ENDPOINTS
from oncekey.core.api_keys import PREFIXES
from oncekey.durable.shapes import json_of
from oncekey.wire.problem import codes

DOCUMENT: dict[str, Any] = msgspec.json.decode(json_of(document_of(ENDPOINTS)))
ADMIN_DOCUMENT: dict[str, Any] = msgspec.json.decode(json_of(document_of_admin()))
TABLES = {
    "callers": (DOCUMENT, ENDPOINTS, SCHEMAS),
    "admins": (ADMIN_DOCUMENT, ADMIN, ADMIN_SCHEMAS),
}
ALL = (*ENDPOINTS, *ADMIN)
IDS = [f"{each.method} {each.path}" for each in ALL]


def operation(endpoint: Endpoint) -> dict[str, Any]:
    path = endpoint.path.replace(":path", "")
    document = ADMIN_DOCUMENT if endpoint.access == "admin" else DOCUMENT
    found: dict[str, Any] = document["paths"][path][endpoint.method.lower()]
    return found


@pytest.mark.parametrize("table", TABLES)
def test_the_document_is_valid(table: str) -> None:
    document, _, _ = TABLES[table]
    assert document["openapi"] == "3.1.0"
    validate(document)


@pytest.mark.parametrize("table", TABLES)
def test_there_is_an_operation_for_every_endpoint(table: str) -> None:
    document, endpoints, _ = TABLES[table]
    described = [each for path in document["paths"].values() for each in path.values()]
    names = {each["operationId"] for each in described}
    assert len(endpoints) == len(described) == len(names)


@pytest.mark.parametrize("endpoint", ALL, ids=IDS)
def test_an_operation_tells_its_policy_and_who_may_call(endpoint: Endpoint) -> None:
    described = operation(endpoint)
    assert described["x-idempotency-policy"] == endpoint.policy
    assert bool(described["security"]) is not endpoint.is_open
    headers = [each["name"] for each in described["parameters"] if each["in"] == "header"]
    assert headers == ([] if endpoint.policy == "PROHIBITED" else ["Idempotency-Key"])


@pytest.mark.parametrize("endpoint", ALL, ids=IDS)
def test_an_operation_has_its_parameters_and_answers(endpoint: Endpoint) -> None:
    described = operation(endpoint)
    names: dict[str, list[str]] = {"path": [], "query": [], "header": []}
    for each in described["parameters"]:
        names[each["in"]].append(each["name"])
    assert names["path"] == re.findall(r"\{(\w+)", endpoint.path)
    assert names["query"] == [each.name for each in endpoint.query]
    assert ("requestBody" in described) is (endpoint.body is not None)
    statuses = {*endpoint.replies, *(codes()[code][0] for code in problems_of(endpoint))}
    assert set(described["responses"]) == set(map(str, statuses))


@pytest.mark.parametrize("endpoint", [each for each in ALL if "{" in each.path])
def test_a_path_that_names_something_may_name_nothing(endpoint: Endpoint) -> None:
    """Also where whatever can be named is there, as classes of retention are once they are set."""
    assert "`not-found`" in operation(endpoint)["responses"]["404"]["description"]


def test_mutating_endpoints_take_a_key() -> None:
    assert {each.policy for each in ALL if each.method != "GET"} == {"ACCEPTED", "REQUIRED_A"}


@pytest.mark.parametrize("table", TABLES)
def test_every_schema_is_used(table: str) -> None:
    document, _, schemas = TABLES[table]
    text = json_of(document).decode()
    unused = [name for name in schemas if f'"#/components/schemas/{name}"' not in text]
    assert unused == []


@pytest.mark.parametrize("table", TABLES)
def test_a_document_tells_whose_keys_it_is_about(table: str) -> None:
    document, endpoints, _ = TABLES[table]
    (prefix,) = {PREFIXES[each.access] for each in endpoints if each.access != "open"}
    for scheme in document["components"]["securitySchemes"].values():
        assert f"`{prefix}…`" in scheme["description"]
