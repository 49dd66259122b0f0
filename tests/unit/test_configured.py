"""Settings become routes and ledgers; no option of a rule is out of the configuration's reach."""

from dataclasses import fields, replace
from pathlib import Path

import pytest

from oncekey.compose.configured import ledger_of, routes_of
from oncekey.config import RouteSettings, Settings, load
from oncekey.wire.fingerprint import Fingerprint
from oncekey.wire.rule import Rule

GIVEN = {
    "policy": "REQUIRED_A",
    "methods": ["PUT"],
    "in_flight": "attach",
    "attach_timeout": "5s",
    "takeover": "refuse",
    "retention": "financial",
    "fingerprint": ["amount"],
    "store_server_errors": True,
    "store_events": True,
    "max_stored_body": 1,
    "max_request_body": 2,
    "drop_headers": ["X-Trace"],
    "fail_open": True,
    "example": "{}",
}


def settings_with(**route: object) -> Settings:
    return load(None, {}, {"routes": [{"path": "/a", **route}]})


def test_every_option_of_a_rule_can_be_configured() -> None:
    of_rules = {each.name for each in fields(Rule) if each.init} - {"key"}
    of_routes = {each.name for each in fields(RouteSettings)}
    assert of_rules <= of_routes
    of_the_edge = {"upstream", "level", "identity", "uncertain", "source", "title"}
    assert of_routes - of_rules == {"path", "policy", "required", "example", *of_the_edge}


def test_what_is_given_reaches_the_rule() -> None:
    (made,) = routes_of(settings_with(**GIVEN))
    assert made.path == "/a"
    assert made.rule == Rule(
        key="required",
        methods=frozenset({"PUT"}),
        in_flight="attach",
        attach_timeout=5.0,
        takeover="refuse",
        retention="financial",
        fingerprint=Fingerprint.of_fields("amount"),
        store_server_errors=True,
        store_events=True,
        max_stored_body=1,
        max_request_body=2,
        drop_headers=frozenset({b"x-trace"}),
        fail_open=True,
    )


@pytest.mark.parametrize(
    "option, key",
    [
        ({"policy": "REQUIRED_A"}, "required"),
        ({"policy": "ACCEPTED"}, "optional"),
        ({"policy": "PROHIBITED"}, "prohibited"),
        ({"policy": "HANDLER_INTERNAL_C"}, "ignored"),
        ({"required": True}, "required"),
        ({"required": False}, "optional"),
    ],
)
def test_policies(option: dict[str, object], key: str) -> None:
    (made,) = routes_of(settings_with(**option))
    assert made.rule == replace(Rule(), key=key)


def test_a_route_with_an_upstream_is_not_the_apps() -> None:
    upstreams = {"orders": {"url": "http://127.0.0.1:9000"}}
    routes = [
        {"path": "/a", "policy": "ACCEPTED"},
        {"path": "/b", "policy": "ACCEPTED", "upstream": "orders"},
    ]
    settings = load(None, {}, {"upstreams": upstreams, "routes": routes})
    assert [each.path for each in routes_of(settings)] == ["/a"]


def test_the_ledger_has_the_classes_of_the_configuration(tmp_path: Path) -> None:
    settings = load(None, {}, {"store.url": "memory://", "retention": {"nightly": "3d"}})
    ledger = ledger_of(settings)
    assert ledger.retention()["nightly"] == 259200.0
    ledger.close()
