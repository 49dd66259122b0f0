"""Another service's document gets what the edge adds, keeps all it said, and stays valid."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openapi_spec_validator import validate

from oncekey.core.errors import InvalidInput
from oncekey.edge.document.annotate import annotate
from oncekey.edge.policy import RULE_KEYS, EdgeRoute, Policy
from oncekey.wire.rule import rule_of


def route(
    path: str, policy: Policy = "REQUIRED_A", methods: tuple[str, ...] = ("POST",), **rule: Any
) -> EdgeRoute:
    made = rule_of(methods=methods, key=RULE_KEYS[policy], **rule)
    return EdgeRoute(path, policy, made, upstream="orders")


def document(version: str = "3.1.0", **paths: Any) -> Any:
    """`orders_id_pay={…}` is the item of `/orders/{id}/pay`."""
    return {
        "openapi": version,
        "info": {"title": "Orders", "version": "7"},
        "paths": {f"/{name.replace('_', '/')}": item for name, item in paths.items()},
    }


def operation(**more: Any) -> Any:
    return {"responses": {"201": {"description": "Made."}}, **more}


def holds(whole: Any, part: Any) -> bool:
    """Whether everything that `part` says stands in `whole` at the same place."""
    if isinstance(part, dict):
        return all(name in whole and holds(whole[name], value) for name, value in part.items())
    if isinstance(part, list):
        return len(whole) >= len(part) and all(map(holds, whole, part))
    return bool(whole == part)


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
def test_an_operation_gets_policy_retention_key_problems_and_headers(version: str) -> None:
    before = document(version, orders={"post": operation(summary="Order", tags=["x"])})
    after, uncovered = annotate(before, [route("/orders", retention="financial")])
    validate(after)
    found = after["paths"]["/orders"]["post"]

    assert uncovered == []
    assert found["x-idempotency-policy"] == "REQUIRED_A"
    assert found["x-idempotency-retention"] == {"class": "financial", "seconds": 604800}
    assert [(each["name"], each["required"]) for each in found["parameters"]] == [
        ("Idempotency-Key", True)
    ]
    assert "Idempotent-Replayed" in found["responses"]["201"]["headers"]
    assert {"400", "401", "409", "422", "502", "503", "504"} <= set(found["responses"])
    assert holds(after, before)


def test_the_document_that_was_given_stays_as_it_is() -> None:
    before = document(orders={"post": operation()})
    kept = copy.deepcopy(before)
    annotate(before, [route("/orders")])
    assert before == kept


def test_what_no_route_covers_is_told_and_left_alone() -> None:
    before = document(orders={"post": operation(), "get": operation()}, health={"get": operation()})
    after, uncovered = annotate(before, [route("/orders")])
    assert uncovered == ["GET /orders", "GET /health"]
    assert after["paths"]["/health"] == before["paths"]["/health"]
    assert after["paths"]["/orders"]["get"] == before["paths"]["/orders"]["get"]


def test_a_document_without_a_covered_operation_does_not_change() -> None:
    before = document(health={"get": operation()})
    assert annotate(before, [route("/orders")]).document == before


@pytest.mark.parametrize(
    "pattern, path, fits",
    [
        ("/orders/{id}", "/orders/{orderId}", True),
        ("/orders/{rest:path}", "/orders/{orderId}/lines/{line}", True),
        ("/orders/{id}", "/orders/{orderId}/lines", False),
        ("/orders/export", "/orders/{orderId}", False),
        ("/orders/{id}", "/orders/export", True),
    ],
)
def test_templates_are_matched_by_their_segments(pattern: str, path: str, fits: bool) -> None:
    before = {**document(), "paths": {path: {"post": operation()}}}
    assert annotate(before, [route(pattern)]).uncovered == ([] if fits else [f"POST {path}"])


@pytest.mark.parametrize(
    "servers, path",
    [
        ([{"url": "/api/v1"}], "/api/v1/orders"),
        ([{"url": "https://orders.internal:9000/api/v1/"}], "/api/v1/orders"),
        ([{"url": "https://x/{base}", "variables": {"base": {"default": "api"}}}], "/api/orders"),
        ([{"url": "https://orders.internal"}], "/orders"),
        ([], "/orders"),
    ],
)
def test_the_path_of_the_server_stands_in_front(servers: Any, path: str) -> None:
    before = {**document(orders={"post": operation()}), "servers": servers}
    assert annotate(before, [route(path)]).uncovered == []


@pytest.mark.parametrize("base", ["/base", "/base/"])
def test_the_path_of_the_upstream_is_not_sent_to_the_edge(base: str) -> None:
    before = {**document(orders={"post": operation()}), "servers": [{"url": "/base"}]}
    after = annotate(before, [route("/orders"), route("/base/orders", "PROHIBITED")], base=base)
    assert after.document["paths"]["/orders"]["post"]["x-idempotency-policy"] == "REQUIRED_A"


def test_the_nearest_server_counts() -> None:
    item = {"post": operation(servers=[{"url": "/near"}]), "servers": [{"url": "/far"}]}
    before = {**document(orders=item), "servers": [{"url": "/farthest"}]}
    assert annotate(before, [route("/near/orders")]).uncovered == []


@pytest.mark.parametrize("place", ["operation", "path", "ref"])
def test_a_key_that_is_described_already_is_not_described_twice(place: str) -> None:
    own = {"name": "idempotency-key", "in": "header", "schema": {"type": "string"}}
    before = document(orders={"post": operation()})
    match place:
        case "operation":
            before["paths"]["/orders"]["post"]["parameters"] = [own]
        case "path":
            before["paths"]["/orders"]["parameters"] = [own]
        case _:
            before["components"] = {"parameters": {"Key": own}}
            ref = {"$ref": "#/components/parameters/Key"}
            before["paths"]["/orders"]["post"]["parameters"] = [ref]
    after = annotate(before, [route("/orders")]).document
    validate(after)
    assert json.dumps(after).lower().count('"name": "idempotency-key"') == 1


def test_problems_are_added_beside_what_a_status_means_already() -> None:
    schema = {"type": "object", "properties": {"reason": {"type": "string"}}}
    own = {"description": "No.", "content": {"application/json": {"schema": schema}}}
    before = document(
        orders={"post": operation(responses={"422": own, "201": {"description": ""}})}
    )
    after = annotate(before, [route("/orders")]).document
    validate(after)
    refused = after["paths"]["/orders"]["post"]["responses"]["422"]

    assert holds(after, before)
    assert set(refused["content"]) == {"application/json", "application/problem+json"}
    assert refused["x-idempotency-problems"] == ["idempotency-key-reused"]


def test_an_answer_that_others_share_is_changed_for_the_covered_operation_only() -> None:
    ref = {"$ref": "#/components/responses/Bad"}
    before = document(
        orders={"post": operation(responses={"400": ref}), "get": operation(responses={"400": ref})}
    )
    before["components"] = {"responses": {"Bad": {"description": "Bad."}}}
    after = annotate(before, [route("/orders")]).document
    validate(after)

    assert after["components"]["responses"] == before["components"]["responses"]
    assert after["paths"]["/orders"]["get"] == before["paths"]["/orders"]["get"]
    bad = after["paths"]["/orders"]["post"]["responses"]["400"]
    assert bad["description"] == "Bad."
    assert "idempotency-key-missing" in bad["x-idempotency-problems"]


def test_what_stands_in_another_document_is_left_alone() -> None:
    ref = {"$ref": "shared.json#/Bad"}
    before = document(orders={"post": operation(responses={"400": ref, "201": ref})})
    responses = annotate(before, [route("/orders")]).document["paths"]["/orders"]["post"][
        "responses"
    ]
    assert responses["400"] == responses["201"] == ref
    assert "409" in responses


def test_a_path_that_is_described_elsewhere_in_the_document_is_found() -> None:
    before = document(orders={"$ref": "#/components/pathItems/Orders"})
    before["components"] = {"pathItems": {"Orders": {"post": operation()}}}
    after, uncovered = annotate(before, [route("/orders")])
    assert uncovered == []
    assert after["paths"]["/orders"]["post"]["x-idempotency-policy"] == "REQUIRED_A"
    assert after["components"]["pathItems"] == before["components"]["pathItems"]


def test_only_answers_that_are_kept_are_marked_as_replays() -> None:
    statuses = ["200", "2XX", "404", "409", "429", "500", "default"]
    responses = {each: {"description": each} for each in statuses}
    before = document(orders={"post": operation(responses=responses)})
    found = annotate(before, [route("/orders")]).document["paths"]["/orders"]["post"]["responses"]
    marked = {each for each in statuses if "Idempotent-Replayed" in found[each].get("headers", {})}
    assert marked == {"200", "2XX", "404"}


def test_headers_of_the_service_itself_stay() -> None:
    own = {"x-operation-id": {"description": "Ours.", "schema": {"type": "integer"}}}
    responses = {"201": {"description": "Made.", "headers": own}}
    before = document(orders={"post": operation(responses=responses)})
    after = annotate(before, [route("/orders")]).document
    headers = after["paths"]["/orders"]["post"]["responses"]["201"]["headers"]
    assert headers["x-operation-id"] == own["x-operation-id"]
    assert "X-Operation-Id" not in headers


@pytest.mark.parametrize("policy", ["PROHIBITED", "HANDLER_INTERNAL_C"])
def test_without_a_key_an_operation_gets_neither_parameter_nor_headers(policy: Policy) -> None:
    before = document(orders={"post": operation()})
    found = annotate(before, [route("/orders", policy)]).document["paths"]["/orders"]["post"]
    assert "parameters" not in found
    assert "headers" not in found["responses"]["201"]
    assert found["x-idempotency-policy"] == policy


@pytest.mark.parametrize(
    "given_document, told",
    [
        ([], "not an object"),
        ({}, "not OpenAPI 3"),
        ({"swagger": "2.0"}, "not OpenAPI 3"),
        ({"openapi": "4.0.0"}, "OpenAPI 4.0.0"),
        ({"openapi": "3.1.0", "paths": []}, "'paths'"),
        ({"openapi": "3.1.0", "paths": {"/a": 1}}, "no object"),
        ({"openapi": "3.1.0", "paths": {"/a": {"$ref": "#/nowhere"}}}, "#/nowhere"),
        ({"openapi": "3.1.0", "paths": {"/a": {"$ref": "#/paths/~1a"}}}, "#/paths/~1a"),
    ],
)
def test_what_cannot_be_annotated_is_refused(given_document: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        annotate(given_document, [route("/a")])


WORDS = st.sampled_from(
    ["post", "responses", "parameters", "$ref", "#/paths/~1a", "201", "headers", "servers", "url"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=20,
)


RESPONSES = st.dictionaries(st.sampled_from(["201", "400", "default"]), JSON, max_size=3)
OPERATIONS = st.fixed_dictionaries(
    {}, optional={"responses": RESPONSES | JSON, "parameters": JSON, "servers": JSON}
)
ITEMS = st.fixed_dictionaries({"post": OPERATIONS | JSON}, optional={"parameters": JSON})


@given(item=ITEMS | JSON, components=JSON, servers=JSON)
def test_whatever_stands_in_a_document_it_is_annotated_or_refused(
    item: Any, components: Any, servers: Any
) -> None:
    before = {
        "openapi": "3.1.0",
        "servers": servers,
        "paths": {"/a": item},
        "components": components,
    }
    try:
        annotate(before, [route("/a")])
    except InvalidInput:
        return
