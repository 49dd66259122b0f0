"""Routes to services on Restate: they get OnceKey's answers, and nothing of Restate shows."""

import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from oncekey import Ref, Scope
from oncekey.compose.ledger import open_ledger
from tests.fixtures.command import Run
from tests.fixtures.edge_site import SECRET, token
from tests.fixtures.restate_edge import code_of, is_replayed, until
from tests.fixtures.restate_server import RestateServer
from tests.fixtures.restate_shop import RestateShop, open_shop
from tests.fixtures.served import Served

pytestmark = pytest.mark.restate

CONFIG = """
[auth.jwt]
secret = "{secret}"
audience = "edge"

[retention]
short = "1s"

[upstreams.orders]
url = "restate://{ingress}/Shop/order?admin={admin}"
timeout = "2s"

[upstreams.failing]
url = "restate://{ingress}/Shop/fail?admin={admin}"

[upstreams.crashing]
url = "restate://{ingress}/Shop/crash?admin={admin}"

[upstreams.nowhere]
url = "restate://{ingress}/Nobody/knows?admin={admin}"

[upstreams.accounts]
url = "restate://{ingress}/Account/{{tenant}}:{{id}}/pay?admin={admin}"

[[routes]]
path = "/orders"
upstream = "orders"
policy = "ACCEPTED"

[[routes]]
path = "/short"
upstream = "orders"
policy = "REQUIRED_A"
retention = "short"

[[routes]]
path = "/failing"
upstream = "failing"
policy = "ACCEPTED"

[[routes]]
path = "/crashing"
upstream = "crashing"
policy = "ACCEPTED"

[[routes]]
path = "/nowhere"
upstream = "nowhere"
policy = "ACCEPTED"

[[routes]]
path = "/accounts/{{id}}/pay"
upstream = "accounts"
policy = "REQUIRED_A"
"""


class ShopSite:
    def __init__(self, served: Served, shop: RestateShop, server: RestateServer, store: str):
        self.served = served
        self.shop = shop
        self.server = server
        self.store = store
        self.client = httpx.Client(
            base_url=served.url, headers={"Authorization": f"Bearer {token()}"}, timeout=30
        )

    def post(self, path: str, key: str | None = None, body: Any = None, **lines: str) -> Any:
        named = {} if key is None else {"Idempotency-Key": key}
        content = {"item": "tea"} if body is None else body
        return self.client.post(path, json=content, headers={**named, **lines})

    def known_keys(self) -> set[str]:
        """Under which Restate knows calls of the shop."""
        sql = "SELECT idempotency_key FROM sys_invocation WHERE target_service_name = 'Shop'"
        lines = {"accept": "application/json"}
        reply = httpx.post(f"{self.server.admin}/query", json={"query": sql}, headers=lines)
        return {row.get("idempotency_key", "") for row in reply.json()["rows"]}


@pytest.fixture(scope="module")
def whole_site(
    restate_of_the_edge: RestateServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ShopSite]:
    """The ledger is a file: services on Restate are behind an edge of any kind."""
    folder = tmp_path_factory.mktemp("shop")
    server = restate_of_the_edge
    parts = {name: server.nodes[0].addresses[name] for name in ("ingress", "admin")}
    (folder / "edge.toml").write_text(CONFIG.format(secret=SECRET, **parts))
    store = f"sqlite:///{folder}/oncekey.db"
    environ = {"ONCEKEY_STORE__URL": store, "ONCEKEY_WEBHOOKS__KEY_FILE": f"{folder}/hooks.key"}
    with ExitStack() as ends:
        shop = ends.enter_context(open_shop(server.admin))
        served = Served(["--config", f"{folder}/edge.toml"], folder, environ)
        ends.callback(served.kill)
        made = ShopSite(served, shop, server, store)
        ends.callback(made.client.close)
        yield made


@pytest.fixture
def site(whole_site: ShopSite) -> ShopSite:
    whole_site.shop.seen.clear()
    return whole_site


@pytest.fixture
def key() -> str:
    return secrets.token_hex(8)


def is_discreet(answer: httpx.Response) -> bool:
    """Whether it says nothing of Restate, but for the number of a call that has no other."""
    lines = [pair for pair in answer.headers.items() if pair[0] != "x-operation-id"]
    told = f"{lines} {answer.text}".lower()
    words = ("restate", "inv_1", "access-control", "stack", "traceback", "hunter2", "source")
    return not any(word in told for word in words)


def test_a_request_is_run_once_and_replayed(site: ShopSite, key: str) -> None:
    first, again = (site.post("/orders", key) for _ in range(2))
    assert (first.status_code, first.json()["ordered"]) == (200, {"item": "tea"})
    assert (again.status_code, again.content) == (200, first.content)
    assert [is_replayed(first), is_replayed(again)] == [False, True]
    assert first.headers["x-operation-id"] == again.headers["x-operation-id"]
    assert first.headers["x-operation-id"].startswith("op_")
    other = site.post("/orders", key, {"item": "coffee"})
    assert (other.status_code, code_of(other)) == (422, "idempotency-key-reused")
    assert all(is_discreet(each) for each in (first, again, other))
    assert len(site.shop.seen) == 1


def test_restate_is_given_the_key_with_its_namespace(site: ShopSite, key: str) -> None:
    site.post("/orders", key)
    assert f"t-acme:shop:user:alice:{key}" in site.known_keys()


def test_only_what_is_listed_goes_there(site: ShopSite, key: str) -> None:
    site.post("/orders", key, Cookie="session=1", **{"X-Secret": "no", "X-Request-Id": "r-1"})
    (_, _, lines) = site.shop.seen[0]
    assert lines["x-tenant-id"] == "acme"
    assert lines["x-request-id"] == "r-1"
    assert {"authorization", "cookie", "x-secret"}.isdisjoint(lines)


def test_a_request_without_a_key_can_be_spoken_of(site: ShopSite) -> None:
    first, second = (site.post("/orders") for _ in range(2))
    numbers = {each.headers["x-operation-id"] for each in (first, second)}
    assert len(numbers) == 2
    assert "x-restate-id" not in first.headers
    assert len(site.shop.seen) == 2


def test_an_object_is_called_by_the_path_and_whoever_asks(site: ShopSite, key: str) -> None:
    assert site.post("/accounts/a%20b/pay", key).json() == "acme:a b"
    assert site.shop.seen[0][:2] == ("pay", "acme:a b")


@pytest.mark.parametrize("status, kept", [(402, True), (404, True), (409, False), (503, False)])
def test_how_a_handler_fails_is_told_as_a_problem(
    site: ShopSite, key: str, status: int, kept: bool
) -> None:
    body = {"status": status, "message": "no money left"}
    first, again = (site.post("/failing", key, body) for _ in range(2))
    for answer in (first, again):
        assert (answer.status_code, code_of(answer)) == (status, "terminal-error")
        assert ("no money left" in answer.text) == (status < 500)
        assert is_discreet(answer)
    assert is_replayed(again) == kept
    # Restate would answer the same for as long as it remembers.
    assert len(site.shop.seen) == (1 if kept else 2)


def test_nothing_of_what_broke_inside_is_told(site: ShopSite, key: str) -> None:
    for answer in (site.post("/crashing", key), site.post("/crashing")):
        assert (answer.status_code, code_of(answer)) == (500, "terminal-error")
        assert is_discreet(answer)


def test_a_request_that_the_handler_does_not_take_is_refused(site: ShopSite) -> None:
    answer = site.client.post("/orders", content=b"x", headers={"Content-Type": "text/plain"})
    assert (answer.status_code, code_of(answer)) == (400, "invalid-input")
    assert is_discreet(answer)
    assert site.shop.seen == []


def test_a_service_that_nobody_knows_cannot_be_reached(site: ShopSite, key: str) -> None:
    for answer in (site.post("/nowhere", key), site.post("/nowhere")):
        assert (answer.status_code, code_of(answer)) == (502, "upstream-unreachable")
        assert is_discreet(answer)


def test_who_waits_too_long_is_told_and_gets_the_answer_later(site: ShopSite, key: str) -> None:
    """Restate would let him wait for ever."""
    site.shop.may_go_on.clear()
    late = site.post("/orders", key)
    assert (late.status_code, code_of(late)) == (504, "upstream-timeout")
    site.shop.may_go_on.set()
    answer = site.post("/orders", key)
    assert (answer.status_code, answer.json()["number"]) == (200, 1)
    assert len(site.shop.seen) == 1


def test_one_in_flight_is_told_so(site: ShopSite, key: str) -> None:
    site.shop.may_go_on.clear()
    running = threading.Thread(target=site.post, args=("/orders", key))
    running.start()
    until(lambda: len(site.shop.seen) == 1)
    assert code_of(site.post("/orders", key)) == "request-in-progress"
    assert site.post("/orders", key, {"b": 1}).status_code == 422
    site.shop.may_go_on.set()
    running.join()
    assert is_replayed(site.post("/orders", key))
    assert len(site.shop.seen) == 1


def test_what_is_over_for_the_ledger_is_over_for_restate(site: ShopSite, key: str) -> None:
    assert not is_replayed(site.post("/short", key))
    until(lambda: not is_replayed(site.post("/short", key)))
    assert len(site.shop.seen) == 2


def test_a_purged_key_runs_at_once(site: ShopSite, key: str) -> None:
    ref = Ref(Scope("t-acme:shop:user:alice", "POST /orders"), key)
    ledger = open_ledger(site.store)
    try:
        for runs in (1, 2, 3):
            assert not is_replayed(site.post("/orders", key))
            assert len(site.shop.seen) == runs
            assert ledger.purge(ref)
    finally:
        ledger.close()


@pytest.mark.parametrize(
    "named, told",
    [
        ("Shop/order?admin={admin}", ", reachable"),
        ("Nobody/knows?admin={admin}", "knows no Nobody/knows: register the service with it"),
        ("Shop/nothing?admin={admin}", "knows no Shop/nothing: register the service with it"),
        ("Shop/order?admin=127.0.0.1:1", "http://127.0.0.1:1: name it with ?admin=host:9070"),
    ],
)
def test_check_looks_for_the_handler(
    oncekey: Run, site: ShopSite, tmp_path: Any, named: str, told: str
) -> None:
    addresses = site.server.nodes[0].addresses
    url = f"restate://{addresses['ingress']}/{named.format(admin=addresses['admin'])}"
    (tmp_path / "oncekey.toml").write_text(
        f"store.url = 'memory://'\n[upstreams.shop]\nurl = '{url}'\n"
    )
    done = oncekey("check")
    shown = done.stdout + done.stderr
    assert done.returncode == 0
    assert [line.endswith(told) for line in shown.splitlines() if "upstream shop" in line] == [True]


@pytest.mark.parametrize(
    "url, words",
    [
        ("restate://h:8080", "not of the form"),
        ("restate://h:8080/Shop", "not of the form"),
        ("restate://h:8080/Shop/a/b/c", "not of the form"),
        ("restate://h:8080/Shop/order?space=x", "admin=host:9070"),
        ("restate://user:hunter2@h/Shop/order", "a user or a password"),
        ("restate://h:8080/oncekey.Request/purge", "OnceKey's own"),
        ("restate://h:8080/Shop/{id}/order", "the path has no {id}"),
        ("restate://h:8080/Sh%20op/order", "no name of a service"),
    ],
)
def test_a_mistake_in_the_url_is_told(oncekey: Run, tmp_path: Any, url: str, words: str) -> None:
    route = '[[routes]]\npath = "/orders"\nupstream = "shop"\npolicy = "REQUIRED_A"\n'
    text = f"store.url = 'memory://'\n[upstreams.shop]\nurl = {json.dumps(url)}\n{route}"
    (tmp_path / "oncekey.toml").write_text(text)
    told = oncekey("check", "--offline")
    assert told.returncode != 0
    shown = " ".join((told.stdout + told.stderr).split())
    assert words in shown
    assert "hunter2" not in shown
