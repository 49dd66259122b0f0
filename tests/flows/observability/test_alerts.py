"""The alerts: promtool reads them, each is told where it should be and not where it should not."""

from pathlib import Path

import pytest
import yaml

from tests.fixtures.command import Run
from tests.fixtures.pages import DOCS
from tests.fixtures.prometheus import RULES, alerts, promtool

CASES = Path(__file__).with_name("alerts.yml")
NAMES = [each["alert"] for each in alerts()]


def test_promtool_reads_them() -> None:
    done = promtool("check", "rules", RULES)
    assert done.returncode == 0, done.stderr
    assert f"SUCCESS: {len(NAMES)} rules found" in done.stdout


def test_each_is_told_when_it_should_be() -> None:
    done = promtool("test", "rules", CASES)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_each_is_tried_both_ways(name: str) -> None:
    cases = yaml.safe_load(CASES.read_text())["tests"]
    tried = [each for case in cases for each in case["alert_rule_test"]]
    expected = [bool(each["exp_alerts"]) for each in tried if each["alertname"] == name]
    assert set(expected) == {True, False}


def test_a_rule_that_is_wrong_is_found(tmp_path: Path) -> None:
    text = RULES.read_text()
    assert "> 900" in text
    (tmp_path / "oncekey.rules.yml").write_text(text.replace("> 900", "> 90000"))
    cases = yaml.safe_load(CASES.read_text())
    about = [each for each in cases["tests"] if "claim gets old" in each["name"]]
    cases |= {"rule_files": ["oncekey.rules.yml"], "tests": about}
    (tmp_path / "alerts.yml").write_text(yaml.safe_dump(cases))

    done = promtool("test", "rules", tmp_path / "alerts.yml")

    assert done.returncode == 1
    assert "OnceKeyStuckClaims" in done.stdout + done.stderr


@pytest.mark.parametrize("rule", alerts(), ids=NAMES)
def test_each_says_what_to_do(rule: dict[str, dict[str, str]]) -> None:
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert all(rule["annotations"][name] for name in ("summary", "description"))


@pytest.mark.parametrize("name", NAMES)
def test_each_is_in_the_documentation(name: str) -> None:
    assert f"| `{name}` |" in (DOCS / "how-to/observe.md").read_text()


def test_the_command_gives_them(oncekey: Run, tmp_path: Path) -> None:
    assert oncekey("observe", "alerts").stdout == RULES.read_text()
    done = oncekey("observe", "alerts", "--output", "oncekey.rules.yml")
    assert done.stdout == "wrote oncekey.rules.yml\n"
    assert (tmp_path / "oncekey.rules.yml").read_text() == RULES.read_text()


def test_what_cannot_be_written_is_told(oncekey: Run) -> None:
    done = oncekey("observe", "alerts", "--output", "nowhere/oncekey.rules.yml")
    assert (done.returncode, done.stdout) == (1, "")
    told = "error: cannot write nowhere/oncekey.rules.yml: No such file or directory\n"
    assert done.stderr == told
