"""The edge's OpenAPI document is valid, and says of every route what the edge does there."""

from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator, validate

from oncekey.edge.document.openapi import document_of
from oncekey.edge.policy import RULE_KEYS, EdgeRoute, Policy
from oncekey.wire.problem import codes
from oncekey.wire.rule import rule_of

SCHEMES = {
    "jwt": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
    "admin": {"type": "http", "scheme": "bearer"},
}
OWN = {
    "/api/v1/operations/{operation_id}",
    "/api/v1/operations/{operation_id}/output",
    "/api/v1/webhooks/{provider}/{webhook_id}",
    "/edge/decide",
}


def route(path: str, policy: Policy = "REQUIRED_A", **options: Any) -> EdgeRoute:
    """As the configuration makes them; `options` beside those of a route are those of its rule."""
    names = ("level", "anonymous", "uncertain", "source", "title", "upstream")
    beside = {name: options.pop(name) for name in names if name in options}
    rule = rule_of(**{"methods": ["POST"], **options, "key": RULE_KEYS[policy]})
    return EdgeRoute(path, policy, rule, **{"upstream": "orders", **beside})


def described(*routes: EdgeRoute, **options: Any) -> Any:
    document = document_of(routes, **{"schemes": SCHEMES, **options})
    validate(document, cls=OpenAPIV31SpecValidator)
    return document


def told(response: Any) -> set[str]:
    """The codes of a problem answer."""
    return {code for code in codes() if f"`{code}`" in response["description"]}


def test_an_edge_without_routes_has_its_own_paths() -> None:
    document = described()
    assert document["openapi"] == "3.1.0"
    assert set(document["paths"]) == OWN
    assert "/edge/decide" not in described(decides=False)["paths"]


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_decision_may_be_refused_in_the_one_way_a_proxy_knows(method: str) -> None:
    refused = described()["paths"]["/edge/decide"][method]["responses"]["403"]
    assert list(refused["content"]) == ["application/problem+json"]


def test_a_route_with_names_in_its_path_may_not_be_found() -> None:
    paths = described(route("/orders/{id}"), route("/orders"))["paths"]
    assert "not-found" in told(paths["/orders/{id}"]["post"]["responses"]["404"])
    assert "404" not in paths["/orders"]["post"]["responses"]


@pytest.mark.parametrize("policy", RULE_KEYS)
def test_every_route_tells_its_policy_and_how_long_answers_are_kept(policy: Policy) -> None:
    operation = described(route("/orders", policy, retention="financial"))["paths"]["/orders"][
        "post"
    ]
    keeps = policy in {"REQUIRED_A", "ACCEPTED", "REQUIRED_B"}
    assert operation["x-idempotency-policy"] == policy
    assert operation["x-idempotency-retention"] == (
        {"class": "financial", "seconds": 604800} if keeps else {"class": None, "seconds": 0}
    )


@pytest.mark.parametrize(
    "policy, required",
    [
        ("REQUIRED_A", [True]),
        ("ACCEPTED", [False]),
        ("REQUIRED_B", []),
        ("HANDLER_INTERNAL_C", []),
        ("PROHIBITED", []),
    ],
)
def test_the_key_is_a_parameter_where_the_policy_has_one(
    policy: Policy, required: list[bool]
) -> None:
    operation = described(route("/orders", policy))["paths"]["/orders"]["post"]
    keys = [each for each in operation["parameters"] if each["name"] == "Idempotency-Key"]
    assert [each["required"] for each in keys] == required


@pytest.mark.parametrize(
    "policy, status, problems",
    [
        ("REQUIRED_A", "400", {"idempotency-key-missing", "idempotency-key-invalid"}),
        ("REQUIRED_A", "409", {"request-in-progress", "outcome-unknown", "outcome-not-kept"}),
        ("REQUIRED_A", "422", {"idempotency-key-reused"}),
        ("REQUIRED_A", "401", {"unauthorized"}),
        ("REQUIRED_A", "502", {"upstream-unreachable", "upstream-uncertain"}),
        ("REQUIRED_A", "503", {"ledger-unavailable", "identity-unavailable"}),
        ("REQUIRED_A", "504", {"upstream-timeout"}),
        ("ACCEPTED", "422", {"idempotency-key-reused"}),
        ("PROHIBITED", "400", {"idempotency-key-prohibited"}),
        ("REQUIRED_B", "401", {"signature-invalid"}),
        ("REQUIRED_B", "503", {"delivery-in-flight", "secrets-unavailable"}),
        ("HANDLER_INTERNAL_C", "401", {"unauthorized"}),
    ],
)
def test_the_problems_are_those_the_policy_can_have(
    policy: Policy, status: str, problems: set[str]
) -> None:
    responses = described(route("/orders", policy))["paths"]["/orders"]["post"]["responses"]
    assert problems <= told(responses[status])
    assert responses[status]["content"]["application/problem+json"]["schema"] == {
        "$ref": "#/components/schemas/OnceKeyProblem"
    }


def test_no_problem_is_told_that_cannot_be() -> None:
    paths = described(
        route("/accepted", "ACCEPTED", uncertain="rerun"),
        route("/internal", "HANDLER_INTERNAL_C"),
        route("/prohibited", "PROHIBITED"),
        route("/hook", "REQUIRED_B"),
    )["paths"]
    found = {
        path: {code for each in item["post"]["responses"].values() for code in told(each)}
        for path, item in paths.items()
        if "post" in item
    }
    assert not found["/accepted"] & {"idempotency-key-missing", "outcome-unknown"}
    assert not {code for code in found["/internal"] if code.startswith("idempotency")}
    assert not found["/prohibited"] & {"idempotency-key-reused", "request-in-progress"}
    assert "unauthorized" not in found["/hook"]


def test_without_a_service_behind_nothing_is_told_of_one() -> None:
    responses = described(route("/orders", upstream=None))["paths"]["/orders"]["post"]["responses"]
    assert not {"502", "504"} & set(responses)
    assert "401" in responses


def test_what_a_retry_gets_is_told_with_the_answer() -> None:
    paths = described(route("/orders"), route("/reads", "PROHIBITED"))["paths"]
    headers = paths["/orders"]["post"]["responses"]["2XX"]["headers"]
    assert {"Idempotent-Replayed", "Original-Request-Id", "X-Operation-Id"} <= set(headers)
    assert "headers" not in paths["/reads"]["post"]["responses"]["2XX"]


def test_kept_answers_can_be_asked_for_by_their_key() -> None:
    paths = described(route("/orders/{id}/pay", title="Pay an order"))["paths"]
    place = "/orders/{id}/pay/by-idempotency-key/{key}"
    for path in (place, f"{place}/output"):
        operation = paths[path]["get"]
        assert [each["name"] for each in operation["parameters"]] == ["id", "key"]
        assert operation["security"] == [{"jwt": []}]
        assert {"202", "2XX", "401", "404"} <= set(operation["responses"])
        assert "Pay an order" in operation["summary"]


@pytest.mark.parametrize("policy", ["PROHIBITED", "REQUIRED_B", "HANDLER_INTERNAL_C"])
def test_without_a_key_there_is_nothing_to_ask_for(policy: Policy) -> None:
    assert set(described(route("/orders", policy))["paths"]) == {"/orders", *OWN}


def test_a_route_with_a_parameter_named_key_stays_readable() -> None:
    paths = described(route("/values/{key}"))["paths"]
    operation = paths["/values/{key}/by-idempotency-key/{idempotency_key}"]["get"]
    assert [each["name"] for each in operation["parameters"]] == ["key", "idempotency_key"]


def test_the_rest_of_a_path_is_one_parameter() -> None:
    paths = described(route("/files/{name:path}", methods=["PUT", "GET"]))["paths"]
    assert set(paths["/files/{name}"]) == {"get", "put"}
    (name, *_) = paths["/files/{name}"]["put"]["parameters"]
    assert name["description"] == "Any number of segments."


def test_the_first_route_of_a_path_counts() -> None:
    paths = described(
        route("/a/{x}", "REQUIRED_A"),
        route("/a/{y}", "PROHIBITED", methods=["POST", "GET"]),
    )["paths"]
    assert "/a/{y}" not in paths
    assert paths["/a/{x}"]["post"]["x-idempotency-policy"] == "REQUIRED_A"
    assert paths["/a/{x}"]["get"]["x-idempotency-policy"] == "PROHIBITED"


def test_every_operation_has_a_name_of_its_own() -> None:
    paths = described(route("/a/b"), route("/a-b"), route("/a//b"))["paths"]
    names = [each["operationId"] for item in paths.values() for each in item.values()]
    assert len(names) == len(set(names))


def test_methods_that_openapi_does_not_know_are_left_out() -> None:
    assert set(described(route("/a", methods=["POST", "PURGE"]))["paths"]["/a"]) == {"post"}


@pytest.mark.parametrize(
    "options, security",
    [
        ({}, [{"jwt": []}]),
        ({"anonymous": True}, [{"jwt": []}, {}]),
        ({"level": "platform"}, [{"admin": []}]),
        ({"policy": "REQUIRED_B"}, []),
    ],
)
def test_who_may_call_is_told(options: dict[str, Any], security: list[Any]) -> None:
    document = described(route("/orders", **options))
    assert document["paths"]["/orders"]["post"]["security"] == security
    assert document["components"]["securitySchemes"] == SCHEMES


def test_webhooks_are_known_by_their_signature() -> None:
    document = described(retention={"webhook": 60.5})
    operation = document["paths"]["/api/v1/webhooks/{provider}/{webhook_id}"]["post"]
    assert operation["security"] == []
    assert operation["x-idempotency-policy"] == "REQUIRED_B"
    assert operation["x-idempotency-retention"] == {"class": "webhook", "seconds": 60.5}
    assert "signature-invalid" in told(operation["responses"]["401"])


def test_a_class_that_is_not_set_so_far_has_no_seconds() -> None:
    operation = described(route("/a", retention="nightly"))["paths"]["/a"]["post"]
    assert operation["x-idempotency-retention"] == {"class": "nightly", "seconds": None}
