"""The example of the edge, as its README tells it, and all that its configuration offers."""

import json
import re
import runpy
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from oncekey.config import load
from tests.fixtures.console import Reader, commands_of
from tests.fixtures.http.servers import serving
from tests.fixtures.served import ROOT, Serve, Served

EXAMPLE = ROOT / "examples" / "edge"
CONFIG = EXAMPLE / "oncekey.toml"


@pytest.fixture
def served(serve: Serve) -> Iterator[Served]:
    app = runpy.run_path(str(EXAMPLE / "orders.py"))["app"]
    with serving("asgi", app) as port:
        upstream = f"http://127.0.0.1:{port}"
        yield serve("--config", str(CONFIG), ONCEKEY_UPSTREAMS__ORDERS__URL=upstream)


@pytest.fixture
def reader(served: Served, tmp_path: Path) -> Reader:
    store = f"sqlite:///{tmp_path}/oncekey.db"
    return Reader(ROOT, served.url, served.banner, ONCEKEY_STORE__URL=store)


def test_the_readme(reader: Reader) -> None:
    _, _, *lines = [each.line for each in commands_of(EXAMPLE / "README.md")]
    _, first, again, found, late, unknown, seen, purged = reader.type(*lines)

    assert first.answer.status == 201
    assert json.loads(first.answer.body)["item"] == "tea"
    for answer in (again.answer, found.answer):
        assert (answer.status, answer.body) == (201, first.answer.body)
        assert answer.headers["idempotent-replayed"] == "true"
    assert (late.answer.status, unknown.answer.status) == (504, 409)
    assert [each["item"] for each in json.loads(seen.output)] == ["tea", "cake"]
    assert (purged.code, purged.output.split()[0]) == (0, "purged")


def test_the_commands_it_prints(served: Served, reader: Reader) -> None:
    first, again, other = reader.type(*(shlex.join(words) for words in served.curls))

    assert (first.answer.status, again.answer.status, other.answer.status) == (201, 201, 422)
    assert again.answer.body == first.answer.body


def test_what_is_left_to_choose_is_right_too(tmp_path: Path) -> None:
    chosen = re.sub(r"(?m)^#(?=\S)", "", CONFIG.read_text())
    (tmp_path / "oncekey.toml").write_text(chosen)

    settings = load(tmp_path / "oncekey.toml", {}, {})
    assert settings.auth.jwt is not None
    assert settings.auth.gateway.trusted
    policies = {each.policy for each in settings.routes}
    assert policies == {"REQUIRED_A", "REQUIRED_B", "ACCEPTED", "HANDLER_INTERNAL_C", "PROHIBITED"}
