"""The guide for those who call: typed beside an edge, by curl, by Python and by Node.js."""

import re
import subprocess
import sys
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any

import httpx
import pytest

from oncekey.core.finality import is_final_status
from oncekey.core.key import MAX_KEY_LENGTH
from oncekey.schedules.signing import sign
from oncekey.wire.problem import codes
from tests.fixtures.command import clean_environment
from tests.fixtures.guide import files_of
from tests.fixtures.guided import Guided
from tests.fixtures.pages import DOCS
from tests.fixtures.ports import unused_port
from tests.fixtures.scripted import ours, script
from tests.fixtures.served import ROOT, Serve
from tests.fixtures.site import Reply, Site
from tests.fixtures.terminals import terminals

PAGE = DOCS / "integration.md"
TEXT = PAGE.read_text()
API = """
[store]
url = "sqlite:///oncekey.db"

[upstreams.orders]
url = "http://127.0.0.1:{port}"

[[routes]]
path = "/api/v1/orders"
methods = ["POST"]
upstream = "orders"
policy = "REQUIRED_A"
"""
# Those of durable work, of webhooks and of its admins: callers of a route do not see them.
NOT_OF_ROUTES = {
    *("condition-invalid", "control-refused", "delivery-failed", "delivery-in-flight"),
    *("delivery-postponed", "identifier-missing", "invalid-input", "key-conflict", "name-unknown"),
    *("payload-too-large", "promise-over", "request-key-invalid", "schedule-invalid"),
    *("secrets-unavailable", "signature-invalid", "value-unserialisable"),
}


def test_the_guide_is_followed(serve: Serve, tmp_path: Path) -> None:
    with terminals(ROOT) as desk:
        port = unused_port()
        desk.start(f"uvicorn --app-dir examples/edge orders:app --port {port}", port)
        (tmp_path / "oncekey.toml").write_text(API.format(port=port))
        at = unused_port()
        words = {"https://api.example.com": f"http://127.0.0.1:{at}"}
        site = Guided(PAGE, serve, tmp_path, words=words, ONCEKEY_SERVER__PORT=str(at))
        site.open(f"oncekey serve --port {at}")
        made = site.type("oncekey apikeys create --tenant acme --subject user:anna")
        site.type(f"TOKEN={re.findall(r'ok_[^ ]+', made)[0].strip()}")
        site.guide.follow()


def test_every_problem_of_a_route_is_in_the_table() -> None:
    told = re.findall(r"\[`([a-z-]+)`\]\(problems/", TEXT)
    assert sorted(told) == sorted(set(codes()) - NOT_OF_ROUTES)


@pytest.mark.parametrize("line", re.findall(r"(?m)^\| (\d{3} \[.*)$", TEXT))
def test_a_problem_has_the_status_of_the_table(line: str) -> None:
    for status, names in re.findall(r"(\d{3}) ((?:\[`[a-z-]+`\]\([^)]*\)(?:, (?=\[))?)+)", line):
        for name in re.findall(r"`([a-z-]+)`", names):
            assert codes()[name][0] == int(status)


PROGRAMS = {"plain.py": sys.executable, "order.mjs": "node"}
LONG_AGO = "Wed, 21 Oct 2015 07:28:00 GMT"
JSON = {"Content-Type": "application/json"}
PLACED = Reply(b'{"item": "tea"}', 201, JSON)
REPLAYED = {**JSON, "Idempotent-Replayed": "true"}


def run(name: str, site: Site, folder: Path) -> str:
    """One of the programs of the page, with this API in the place of its own."""
    file = folder / name
    file.write_text(files_of(PAGE)[name].replace("https://api.example.com", site.url))
    done = subprocess.run(
        [PROGRAMS[name], str(file)],
        env=clean_environment({"TOKEN": "ok_none"}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", PROGRAMS)
class TestProgram:
    @pytest.mark.parametrize("after", [LONG_AGO, "0", "when it suits you"])
    def test_it_comes_again_when_it_is_told(
        self, name: str, after: str, site: Site, tmp_path: Path
    ) -> None:
        script(site, Reply(b"", 503, {"Retry-After": after}), PLACED)
        assert run(name, site, tmp_path).startswith("201 tea ")
        assert len({each.headers["idempotency-key"] for each in site.heard}) == 1
        assert len(site.heard) == 2

    @pytest.mark.parametrize(
        "stored", [Reply(b'{"item": "tea"}', 500, REPLAYED), ours("terminal-error")]
    )
    def test_what_is_stored_is_asked_for_once(
        self, name: str, stored: Reply, site: Site, tmp_path: Path
    ) -> None:
        script(site, stored)
        assert run(name, site, tmp_path).startswith("500 ")
        assert len(site.heard) == 1

    def test_what_runs_is_asked_for_again(self, name: str, site: Site, tmp_path: Path) -> None:
        busy = ours("request-in-progress")
        script(site, busy._replace(headers={**busy.headers, "retry-after": "0"}), PLACED)
        assert run(name, site, tmp_path).startswith("201 tea ")
        assert len(site.heard) == 2


def test_a_date_is_waited_for() -> None:
    names: dict[str, Any] = {}
    code, _, _ = files_of(PAGE)["plain.py"].partition("with httpx.Client(")
    exec(compile(code, str(PAGE), "exec"), names)
    tomorrow = httpx.Response(
        503, headers={"Retry-After": formatdate(time.time() + 86400, usegmt=True)}
    )
    assert 80_000 < names["wait_of"](tomorrow, 1.0) <= 86400


def test_what_is_given_back_is_that_of_the_table() -> None:
    (row,) = re.findall(r"(?m)^\| ([\d, ]+) of the API itself \| not kept", TEXT)
    told = {int(status) for status in row.split(", ")}
    assert told == {status for status in range(300, 500) if not is_final_status(status, False)}


def test_the_rules_of_a_key_are_those_that_hold() -> None:
    rules = (DOCS / "problems" / "idempotency-key-invalid.md").read_text()
    for words in (f"1 to {MAX_KEY_LENGTH} characters out of", "`A-Z a-z 0-9 . _ ~ -`", "`t-`"):
        assert words in TEXT
        assert words in rules


def test_our_signature_is_verified_as_shown() -> None:
    names: dict[str, object] = {}
    (code,) = re.findall(r"(?ms)^```python\n(import hashlib.*?)^```", TEXT)
    exec(compile(code, str(PAGE), "exec"), names)
    is_ours = names["is_ours"]
    assert callable(is_ours)
    secret, body, now = "a secret that we share", b'{"tick": 1}', int(time.time())
    assert is_ours(secret, sign(secret, body, now), body)
    for header, sent in (
        (sign(secret, body, now - 301), body),
        (sign("another secret of ours", body, now), body),
        (sign(secret, body, now), b'{"tick": 2}'),
        ("", body),
    ):
        assert not is_ours(secret, header, sent)
