"""The OpenAPI document is valid, and says what the table of endpoints says."""

import re
from typing import Any

import msgspec
import pytest
from openapi_spec_validator import validate

from oncekey.api.endpoint import Endpoint
from oncekey.api.openapi import document_of, problems_of
from oncekey.api.schemas import SCHEMAS
from oncekey.api.table import ENDPOINTS
from oncekey.durable.shapes import json_of
from oncekey.wire.problem import codes

DOCUMENT: dict[str, Any] = msgspec.json.decode(json_of(document_of(ENDPOINTS)))
IDS = [f"{each.method} {each.path}" for each in ENDPOINTS]


def operation(endpoint: Endpoint) -> dict[str, Any]:
    path = endpoint.path.replace(":path", "")
    found: dict[str, Any] = DOCUMENT["paths"][path][endpoint.method.lower()]
    return found


def test_the_document_is_valid() -> None:
    assert DOCUMENT["openapi"] == "3.1.0"
    validate(DOCUMENT)


def test_there_is_an_operation_for_every_endpoint() -> None:
    described = [each for path in DOCUMENT["paths"].values() for each in path.values()]
    names = {each["operationId"] for each in described}
    assert len(ENDPOINTS) == len(described) == len(names)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=IDS)
def test_an_operation_tells_its_policy_and_who_may_call(endpoint: Endpoint) -> None:
    described = operation(endpoint)
    assert described["x-idempotency-policy"] == endpoint.policy
    assert bool(described["security"]) is not endpoint.is_open
    headers = [each["name"] for each in described["parameters"] if each["in"] == "header"]
    assert headers == ([] if endpoint.policy == "PROHIBITED" else ["Idempotency-Key"])


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=IDS)
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


def test_mutating_endpoints_take_a_key() -> None:
    assert {each.policy for each in ENDPOINTS if each.method == "POST"} == {
        "ACCEPTED",
        "REQUIRED_A",
    }


def test_every_schema_is_used() -> None:
    text = json_of(DOCUMENT).decode()
    unused = [name for name in SCHEMAS if f'"#/components/schemas/{name}"' not in text]
    assert unused == []
