"""The page on metrics has each metric, field, span and event of the code, and no other."""

import re
from typing import get_args

from opentelemetry.sdk.trace import TracerProvider

from oncekey.core.deliveries import Verdict
from oncekey.core.events import Seen, Way
from oncekey.observe import catalog
from oncekey.observe.catalog import Metric
from oncekey.observe.requests import fields_of
from oncekey.observe.traces import Tracing, _attributes_of
from oncekey.webhooks.then import Then
from tests.fixtures.pages import DOCS
from tests.fixtures.served import ROOT
from tests.fixtures.tables import names_in, rows

PAGE = (DOCS / "reference" / "metrics.md").read_text()
SOURCES = {path: path.read_text() for path in (ROOT / "src" / "oncekey").rglob("*.py")}
# Of every line of the log, whatever it is about.
OF_A_LINE = {"timestamp", "level", "logger", "event"}


def told(says: str) -> list[tuple[str, tuple[str, ...]]]:
    """Names and labels, as the page has them."""
    found = rows(PAGE, "metric", "labels", says)
    return [(name.strip("`"), tuple(filter(None, labels.split(", ")))) for name, labels, _ in found]


def declared(metrics: tuple[Metric, ...], suffix: str = "") -> list[tuple[str, tuple[str, ...]]]:
    return [(each.name + suffix, each.labels) for each in metrics]


def whole_request() -> Seen:
    """One of which everything is known."""
    seen = Seen("POST /orders", 0.0)
    seen.namespace, seen.key = "t-acme:shop:user:anna", "t-acme:shop:user:anna:tea-1"
    seen.case, seen.policy, seen.source = "A", "REQUIRED_A", "header"
    seen.operation, seen.invocation = 7, "inv_1"
    Tracing(TracerProvider()).begin(seen, [])
    return seen


def test_the_metrics_are_those_of_the_catalog() -> None:
    assert told("counts") == declared(catalog.COUNTERS, "_total")
    assert told("measures") == declared(catalog.HISTOGRAMS)
    assert told("says") == declared(catalog.GAUGES)


def test_the_ways_are_those_of_the_code() -> None:
    assert names_in(PAGE, "way", "the request") == list(get_args(Way))


def test_the_fields_are_those_of_the_log() -> None:
    fields = fields_of(whole_request(), 201, 0.1)
    assert set(names_in(PAGE, "field", "holds")) == set(fields) | OF_A_LINE


def test_the_attributes_are_those_of_spans() -> None:
    attributes = set(_attributes_of(whole_request(), 201))
    assert set(names_in(PAGE, "attribute", "of a request")) == attributes
    source = SOURCES[ROOT / "src/oncekey/observe/traces.py"]
    others = set(re.findall(r'"(oncekey\.\w+)"', source)) - attributes
    assert set(names_in(PAGE, "attribute", "of")) == others


def test_the_spans_are_those_of_the_code() -> None:
    """Each is begun with its name; what follows a delivery is called by its kind."""
    begun = {
        name
        for text in SOURCES.values()
        for name in re.findall(r'(?:self\.start|\bpart)\((?:[\w()]+, )?"(\w+)"', text)
    }
    follows = {kind.__name__.lower() for kind in get_args(Then)}
    spans = names_in(PAGE, "span", "inside of", "what it covers")
    assert set(spans) == begun | follows | {"POST /orders", "resume"}


def test_the_events_are_those_that_observers_are_told() -> None:
    """Those that are counted, and `proceed`, which every other follows from."""
    assert set(names_in(PAGE, "event", "detail")) == {
        *catalog.BY_EVENT,
        catalog.DELIVERY,
        "proceed",
    }
    literals = {
        name for text in SOURCES.values() for name in re.findall(r'\bobserve\(\s*"([\w-]+)"', text)
    }
    assert literals
    assert literals <= set(names_in(PAGE, "event", "detail"))


def test_every_verdict_of_a_delivery_is_in_the_reference() -> None:
    page = (DOCS / "reference" / "http.md").read_text()
    assert set(names_in(page, "verdict", "what happened", "answer")) == set(get_args(Verdict))
