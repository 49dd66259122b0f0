"""The page on the edge: its configuration is served, its commands answer what it shows."""

import json
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from oncekey.config import load
from oncekey.edge.policy import Policy
from oncekey.edge.rewrite import MAX_NAMESPACED
from tests.fixtures.console import Reader, answer_of, commands_of
from tests.fixtures.http.servers import serving
from tests.fixtures.pages import DOCS
from tests.fixtures.served import ROOT, Serve, Served

PAGE = DOCS / "how-to" / "edge.md"
TEXT = PAGE.read_text()
CURLS = [each for each in commands_of(PAGE) if each.line.startswith("curl")]


def block(language: str) -> str:
    (found,) = re.findall(rf"(?ms)^```{language}\n(.*?)^```", TEXT)
    return str(found)


class Site(NamedTuple):
    served: Served
    reader: Reader
    """Has made itself an API key, as the page says."""
    seen: list[dict[str, str]]
    """The headers of what reached the service."""


@pytest.fixture
def site(serve: Serve, tmp_path: Path) -> Iterator[Site]:
    orders = runpy.run_path(str(ROOT / "examples" / "edge" / "orders.py"))["app"]
    seen: list[dict[str, str]] = []

    async def noting(scope: Any, receive: Any, send: Any) -> None:
        seen.append({name.decode(): value.decode() for name, value in scope["headers"]})
        await orders(scope, receive, send)

    with serving("asgi", noting) as port:
        told = block("toml").replace("http://127.0.0.1:9000", f"http://127.0.0.1:{port}")
        (tmp_path / "oncekey.toml").write_text(told)
        served = serve()
        reader = Reader(tmp_path, served.url)
        reader.type(*(each.line for each in commands_of(PAGE)[1:3]))
        yield Site(served, reader, seen)


def test_the_answers_are_those_shown(site: Site) -> None:
    first, again = CURLS[:2]
    answers = [each.answer for each in site.reader.type(first.line, again.line)]

    for answer, told in zip(answers, (answer_of(first.shown), answer_of(again.shown)), strict=True):
        assert answer.status == told.status
        assert list(answer.headers) == list(told.headers)
        assert json.loads(answer.body) == json.loads(told.body)
    assert answers[0].body == answers[1].body
    assert len(site.seen) == 1


def test_the_service_sees_what_the_page_says(site: Site) -> None:
    site.reader.type(CURLS[0].line)

    (seen,) = site.seen
    told = dict(line.split(": ", 1) for line in block("text").splitlines())
    told["x-forwarded-host"] = site.served.url.removeprefix("http://")
    assert {name: seen[name] for name in told} == told
    assert not {"authorization", "x-api-key"} & set(seen)


def test_a_lost_answer_is_found(site: Site) -> None:
    first, _, *asked = CURLS
    (ran,) = site.reader.type(first.line)
    number = ran.answer.headers["x-operation-id"]
    lines = [re.sub(r"op_[0-9a-f]{16}", number, each.line) for each in asked]

    for found in site.reader.type(*lines):
        assert (found.answer.status, found.answer.body) == (201, ran.answer.body)
        assert found.answer.headers["idempotent-replayed"] == "true"
    assert len(asked) == 3
    assert len(site.seen) == 1


def test_reads_are_declared(site: Site) -> None:
    line = f'curl -i {site.served.url}{{}} -H "Authorization: Bearer $KEY"'
    read, elsewhere = site.reader.type(line.format("/api/v1/orders"), line.format("/elsewhere"))

    assert (read.answer.status, elsewhere.answer.status) == (200, 404)


def test_the_policies_are_all_there() -> None:
    told = re.findall(r"(?m)^\| `([A-Z_]+)` \|", TEXT)
    assert sorted(told) == sorted(Policy.__args__)  # type: ignore[attr-defined]


def test_the_limits_are_the_defaults(tmp_path: Path) -> None:
    (tmp_path / "oncekey.toml").write_text(block("toml"))
    settings = load(tmp_path / "oncekey.toml", {}, {})
    upstream = settings.upstreams["orders"]

    told = dict(re.findall(r"(?m)^\| .* \| `((?:edge|upstreams)\.[\w.]+)`, (\d+)", TEXT))
    assert {name.rpartition(".")[2]: float(value) for name, value in told.items()} == {
        "head_timeout": settings.edge.head_timeout,
        "body_timeout": settings.edge.body_timeout,
        "connect_timeout": upstream.connect_timeout,
        "timeout": upstream.timeout,
        "max_connections": upstream.max_connections,
    }
    assert f"at most {MAX_NAMESPACED} characters" in TEXT
