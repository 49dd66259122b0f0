"""Retention in the console: seen with where it is from, set once, and shortened only on purpose."""

import pytest
from markupsafe import escape

from tests.fixtures.console_site import ConsoleSite, Visitor


def kept(site: ConsoleSite, name: str) -> tuple[float, str]:
    (found,) = [each for each in site.tell("retention")["classes"] if each["class"] == name]
    return found["seconds"], found["from"]


def test_classes_are_shown_with_where_they_are_from(visitor: Visitor) -> None:
    page = visitor.see("/retention")
    for name in ("financial", "interactive", "webhook"):
        assert f'href="/console/retention/{name}"' in page
    assert "built in" in page
    assert 'data-label="Kept for">7d<' in page
    assert "<dd>built in</dd>" in visitor.see("/retention/interactive")


def test_a_class_is_set_once(console_site: ConsoleSite, visitor: Visitor) -> None:
    form = {**visitor.fields("/retention/webhook"), "kept": "30d"}
    first, second = (visitor.send("/retention/webhook", form) for _ in range(2))
    assert first.headers["location"] == "/console/retention?said=retention-set"
    assert second.headers["location"].endswith("&again=1")
    assert kept(console_site, "webhook") == (30 * 86400, "store")
    entries = console_site.tell("audit", action="retention.set")["entries"]
    assert [(each["target"], each["details"]["seconds"]) for each in entries] == [
        ("webhook", 30 * 86400)
    ]
    assert "set here or by command" in visitor.see("/retention")


def test_it_is_shortened_only_on_purpose(console_site: ConsoleSite, visitor: Visitor) -> None:
    form = {**visitor.fields("/retention/financial"), "kept": "1h"}
    warned = visitor.send("/retention/financial", form)
    assert warned.status_code == 400
    assert "1h is shorter than what is in force, 7d" in warned.text
    assert 'value="1h"' in warned.text
    assert kept(console_site, "financial") == (7 * 86400, "default")
    form = {**visitor.fields("/retention/financial"), "kept": "1h", "shorter": "on"}
    assert visitor.send("/retention/financial", form).status_code == 303
    assert kept(console_site, "financial") == (3600, "store")


@pytest.mark.parametrize("written", ["", "a while", "0s", "-1d", "11000w", "<b>1d</b>"])
def test_what_is_no_time_changes_nothing(
    console_site: ConsoleSite, visitor: Visitor, written: str
) -> None:
    before = kept(console_site, "interactive")
    answer = visitor.act("/retention/interactive", kept=written, shorter="on")
    assert answer.status_code == 400
    assert f'value="{escape(written)}"' in answer.text
    assert "<b>" not in answer.text
    assert "checked" in answer.text
    assert kept(console_site, "interactive") == before


@pytest.mark.parametrize("name", ["nothing", "%3Cscript%3E", "a%2Fb"])
def test_there_is_no_other_class(console_site: ConsoleSite, visitor: Visitor, name: str) -> None:
    visitor.see(f"/retention/{name}", 404)
    proof = visitor.fields("/retention/webhook")
    assert visitor.send(f"/retention/{name}", {**proof, "kept": "7d"}).status_code == 404
    assert name not in [each["class"] for each in console_site.tell("retention")["classes"]]
