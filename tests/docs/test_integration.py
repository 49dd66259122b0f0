"""The guide for those who call: typed beside an edge, by curl, by Python and by Node.js."""

import re
import time
from pathlib import Path

import pytest

from oncekey.core.key import MAX_KEY_LENGTH
from oncekey.schedules.signing import sign
from oncekey.wire.problem import codes
from tests.fixtures.guided import Guided
from tests.fixtures.pages import DOCS
from tests.fixtures.ports import unused_port
from tests.fixtures.served import ROOT, Serve
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
    *("secrets-unavailable", "signature-invalid", "terminal-error", "value-unserialisable"),
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
