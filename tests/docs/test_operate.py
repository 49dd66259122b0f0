"""The page on operating a ledger: every command of it is typed."""

import json
import re
from pathlib import Path

import pytest

import oncekey
from tests.fixtures.command import Run
from tests.fixtures.guide import Guide
from tests.fixtures.installed import installed
from tests.fixtures.pages import DOCS
from tests.fixtures.served import Serve

PAGE = DOCS / "how-to" / "operate.md"
SERVER = """
[upstreams.shop]
url = "http://127.0.0.1:9"

[[routes]]
path = "/orders"
upstream = "shop"
policy = "REQUIRED_A"
"""


@pytest.fixture
def operations(tmp_path: Path, run: Run) -> list[str]:
    """Two, in the ledger of the page."""
    ledger = oncekey.open(f"sqlite:///{tmp_path}/oncekey.db")
    for number in (1, 2):
        ledger.once(f"order:{number}", lambda: "done")
    ledger.close()
    return [each["operation_id"] for each in json.loads(run("keys", "list", "--json").stdout)]


@pytest.fixture
def run(request: pytest.FixtureRequest) -> Run:
    found: Run = request.getfixturevalue("oncekey")
    return found


@pytest.mark.postgres
def test_the_page_is_followed(
    serve: Serve, postgres_url: str, tmp_path: Path, operations: list[str]
) -> None:
    (tmp_path / "oncekey.toml").write_text('[store]\nurl = "sqlite:///oncekey.db"\n')
    (tmp_path / "server.toml").write_text(SERVER)
    served = serve("--config", str(tmp_path / "server.toml"))
    told = sorted(set(re.findall(r"op_[0-9a-f]{16}", PAGE.read_text())))
    words = {
        "postgresql://oncekey@db/shop": postgres_url,
        "http://127.0.0.1:8700": served.url,
        **dict(zip(told, operations, strict=True)),
    }
    guide = Guide(PAGE, tmp_path, words=words, acts={"pip install": installed})
    made = guide.run("oncekey apikeys create --admin").output
    guide.run(f"ADMIN={re.findall(r'oka_[^ ]+', made)[0].strip()}")
    guide.follow()
    assert "retention.set" in guide.run("oncekey audit").output
    assert "order:" not in guide.run("oncekey keys list").output
