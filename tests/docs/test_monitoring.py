"""The page on monitoring: its commands are typed, and every alert that is shipped has a runbook."""

import re
from pathlib import Path

import pytest
import yaml

from oncekey.observe import catalog
from tests.fixtures.guided import Guided
from tests.fixtures.pages import DOCS
from tests.fixtures.prometheus import RULES
from tests.fixtures.served import Serve

PAGE = DOCS / "operations" / "monitoring.md"
TEXT = PAGE.read_text()
ALERTS = [
    rule["alert"]
    for group in yaml.safe_load(RULES.read_text())["groups"]
    for rule in group["rules"]
]
RUNBOOKS = dict(re.findall(r"(?ms)^### (\w+)\n(.*?)(?=^##|\Z)", TEXT))


def test_the_page_is_followed(serve: Serve, tmp_path: Path) -> None:
    Guided(PAGE, serve, tmp_path).guide.follow()


def test_the_runbooks_are_those_of_the_alerts() -> None:
    assert sorted(RUNBOOKS) == sorted(ALERTS)


@pytest.mark.parametrize("alert", ALERTS)
def test_a_runbook_says_what_it_means_and_what_to_do(alert: str) -> None:
    assert re.findall(r"\*\*(It says|Look|Do):", RUNBOOKS[alert]) == ["It says", "Look", "Do"]


def test_the_metrics_of_the_page_exist() -> None:
    known = Path(catalog.__file__).read_text()
    told = set(re.findall(r"`((?:idempotency|oncekey)_[a-z_]+)`", TEXT))
    assert {name for name in told if name.removesuffix("_total") not in known} == set()
    assert told


def test_the_severities_are_those_of_the_rules() -> None:
    rules = [
        rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
    ]
    critical = {rule["alert"] for rule in rules if rule["labels"]["severity"] == "critical"}
    assert critical == {"OnceKeyUnprotectedRequests", "OnceKeyDown"}
