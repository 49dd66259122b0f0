"""Providers deliver to `oncekey serve` over real sockets: to workflows, and to a service behind."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from oncekey.webhooks.delivery import Delivery
from oncekey.webhooks.providers.registry import providers_of
from tests.fixtures.behind import DO, Behind
from tests.fixtures.ports import unused_port
from tests.fixtures.served import Served
from tests.fixtures.workshop import Workshop

PUBLIC = "https://hooks.example.com"
CONFIG = """
[webhooks]
public_url = "{public}"
max_body = 100000

[upstreams.behind]
url = "{behind}"
timeout = "5s"

[[routes]]
path = "/payments"
methods = ["POST"]
upstream = "behind"
policy = "REQUIRED_B"

[[routes]]
path = "/again"
methods = ["POST"]
upstream = "behind"
policy = "REQUIRED_B"
uncertain = "rerun"
"""


class Site:
    """A server with workflows in it and a service behind it."""

    def __init__(self, folder: Path) -> None:
        self.behind = Behind(folder, unused_port())
        config = CONFIG.format(public=PUBLIC, behind=self.behind.url)
        (folder / "oncekey.toml").write_text(config)
        self.shop = Workshop(folder)
        self.client = httpx.Client(trust_env=False, timeout=30)

    def webhook(self, provider: str, then: str) -> "Webhook":
        words = ("--provider", provider, "--then", then, "--project", "shop")
        return Webhook(self, self.shop.json("webhooks", "create", *words))

    def seen(self, name: str) -> list[dict[str, Any]]:
        """What reached the service behind of the event with this name."""
        return [
            each
            for each in self.behind.seen
            if dict(each["headers"])["idempotency-key"].endswith(f"-{name}")
        ]

    def restart(self) -> None:
        self.shop.served.kill()
        self.shop.served = Served(["--app", "flows:app"], self.shop.folder, {})
        self.shop.url = self.shop.served.url

    def close(self) -> None:
        self.client.close()
        self.shop.served.kill()
        self.behind.kill()


class Webhook:
    def __init__(self, site: Site, made: dict[str, Any]) -> None:
        self._site = site
        self.id = made["id"]
        self.secret = made["secret"]
        self.provider = providers_of()[made["provider"]]
        self.path = f"/api/v1/webhooks/{made['provider']}/{self.id}"

    def signed(self, body: Any, **headers: str) -> Delivery:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = tuple((name.replace("_", "-").encode(), v.encode()) for name, v in headers.items())
        delivery = Delivery(PUBLIC + self.path, lines, content)
        return self.provider.sign(delivery, self.secret, time.time())

    def send(self, delivery: Delivery) -> httpx.Response:
        url = delivery.url.replace(PUBLIC, self._site.shop.url)
        headers = [(name.decode(), value.decode()) for name, value in delivery.headers]
        return self._site.client.post(url, content=delivery.body, headers=headers)

    def deliver(self, body: Any, **headers: str) -> httpx.Response:
        return self.send(self.signed(body, **headers))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"))
    yield made
    made.close()


def paid(name: str, charge: str) -> dict[str, Any]:
    return {"id": name, "data": {"object": {"id": charge}}}


# -- to workflows ------------------------------------------------------------------------------

RESOLVE = 'resolve:"stripe:" + body.data.object.id'


@pytest.mark.parametrize("early", [False, True])
def test_a_payment_ends_an_order(site: Site, early: bool) -> None:
    number = 1 + early
    stripe, event = site.webhook("stripe", RESOLVE), paid(f"evt_{number}", f"ch_{number}")
    if early:
        assert stripe.deliver(event).json()["status"] == "parked"
    order = site.shop.start("order", number)
    if not early:
        site.shop.until(order, "waiting")
        assert stripe.deliver(event).json()["status"] == "resolved"
    ended = site.shop.until(order, "succeeded")
    assert ended["result"] == {"payment": event, "receipt": number}
    answers = [stripe.deliver(event) for _ in range(5)]
    assert {each.status_code for each in answers} == {200}
    assert {each.headers["idempotent-replayed"] for each in answers} == {"true"}


def test_of_many_at_once_one_starts_a_workflow(site: Site) -> None:
    github = site.webhook("github", "workflow:echo")
    with ThreadPoolExecutor(20) as pool:
        answers = list(
            pool.map(lambda _: github.deliver({"n": 1}, x_github_delivery="d1"), range(20))
        )
    assert {each.status_code for each in answers} <= {200, 503}
    assert github.deliver({"n": 1}, x_github_delivery="d1").status_code == 200
    captured = github.deliver({"n": 1}, x_github_delivery="d2")
    assert (captured.status_code, captured.json()["reason"]) == (200, "repeated-body")
    listed = site.shop.json("workflows", "list", "--name", "echo")
    keys = [each["key"] for each in listed if each["key"].startswith("github-d")]
    assert len(keys) == 1


def test_both_kinds_of_twilio(site: Site) -> None:
    """The URL that is signed is the one providers know, not that of this server."""
    twilio = site.webhook("twilio", "workflow:echo")
    form = b"MessageSid=SM0a&MessageStatus=delivered&Body=tea+%26+cake"
    for _ in range(2):
        assert twilio.deliver(form).status_code == 200
    kind = "com.twilio.messaging.message.delivered"
    events = [{"specversion": "1.0", "type": kind, "id": f"EZ{number}"} for number in range(3)]
    for batch in (events[:2], events[1:]):
        answer = twilio.deliver(batch, content_type="application/json")
        assert (answer.status_code, len(answer.json()["items"])) == (200, 2)
    listed = site.shop.json("workflows", "list", "--name", "echo")
    inputs = [each["input"] for each in listed if each["key"].startswith("twilio-")]
    fields = {"MessageSid": "SM0a", "MessageStatus": "delivered", "Body": "tea & cake"}
    assert sorted(inputs, key=str) == sorted([*events, fields], key=str)


def test_standard_webhooks(site: Site) -> None:
    standard = site.webhook("standard", "event:body.type")
    for _ in range(3):
        answer = standard.deliver({"type": "paid"}, webhook_id="msg_1")
        assert (answer.status_code, answer.json()["status"]) == (200, "published")


# -- to a service behind -----------------------------------------------------------------------


def test_the_service_behind_is_asked_once(site: Site) -> None:
    stripe = site.webhook("stripe", "forward:/payments")
    do = json.dumps({"status": 201, "headers": [["x-made", "yes"]]})
    forged = {"x_tenant_id": "other", "idempotency_key": "mine", "x_subject": "user:root"}
    answers = [stripe.deliver({"id": "evt_f1"}, **{DO: do}, **forged) for _ in range(3)]
    assert [each.status_code for each in answers] == [200, 200, 200]
    assert {each.content for each in answers} == {answers[0].content}
    (effect,) = site.seen("evt_f1")
    headers = dict(effect["headers"])
    assert headers["idempotency-key"] == "t-default:shop:service:webhook-ingest:stripe-evt_f1"
    assert (headers["x-tenant-id"], headers["x-subject"]) == ("default", "service:webhook-ingest")
    assert (effect["method"], effect["target"]) == ("POST", "/payments")


def test_a_failure_is_asked_again_and_a_refusal_is_not(site: Site) -> None:
    stripe = site.webhook("stripe", "forward:/payments")
    failing = [stripe.deliver({"id": "evt_f2"}, **{DO: '{"status": 500}'}) for _ in range(2)]
    assert [each.status_code for each in failing] == [500, 500]
    assert [stripe.deliver({"id": "evt_f2"}).status_code for _ in range(2)] == [200, 200]
    assert len(site.seen("evt_f2")) == 3
    refused = [stripe.deliver({"id": "evt_f3"}, **{DO: '{"status": 422}'}) for _ in range(3)]
    assert [each.status_code for each in refused] == [422, 422, 422]
    assert len(site.seen("evt_f3")) == 1


def test_a_service_that_dies_is_asked_again_only_where_it_may_be(site: Site) -> None:
    for path, statuses, effects in (("/payments", [500, 500], 1), ("/again", [200, 200], 2)):
        stripe = site.webhook("stripe", f"forward:{path}")
        name = f"evt_{path.strip('/')}"
        assert stripe.deliver({"id": name}, **{DO: '{"die": "after"}'}).status_code == 502
        site.behind.join()
        # Nobody is there: nothing is sent, and nothing changes.
        away = stripe.deliver({"id": f"{name}_away"})
        assert (away.status_code, away.json()["type"].rpartition("/")[2]) == (
            502, "upstream-unreachable",
        )  # fmt: skip
        site.behind.start()
        assert [stripe.deliver({"id": name}).status_code for _ in range(2)] == statuses
        assert len(site.seen(name)) == effects
        assert stripe.deliver({"id": f"{name}_away"}).status_code == 200


def test_what_a_killed_server_was_about_is_done_by_the_next(site: Site) -> None:
    stripe = site.webhook("stripe", "forward:/payments")
    with ThreadPoolExecutor(1) as pool:
        cut_off = pool.submit(stripe.deliver, {"id": "evt_k1"}, **{DO: '{"sleep": 60}'})
        while not site.seen("evt_k1"):
            """Until the service behind is at work."""
        site.restart()
        with pytest.raises(httpx.TransportError):
            cut_off.result()
    answers = [stripe.deliver({"id": "evt_k1"}).status_code for _ in range(2)]
    assert answers == [200, 200]
    # Asked again, under the same key: whether it was done twice is up to the service.
    first, second = site.seen("evt_k1")
    assert dict(first["headers"])["idempotency-key"] == dict(second["headers"])["idempotency-key"]


# -- refused -----------------------------------------------------------------------------------


def test_what_is_not_good_is_refused_at_the_door(site: Site) -> None:
    stripe = site.webhook("stripe", "workflow:echo")
    good = stripe.signed({"id": "evt_r1"})
    unknown = good._replace(url=good.url.replace(stripe.id, "wh_" + "a" * 30))
    other = good._replace(url=good.url.replace("/stripe/", "/github/"))
    large = stripe.signed({"id": "evt_r1", "long": "x" * 100_000})
    cut = good._replace(body=good.body[:-1])
    bare = good._replace(headers=())
    answers = [stripe.send(each).status_code for each in (unknown, other, large, cut, bare)]
    assert answers == [404, 404, 413, 401, 401]
    listed = site.shop.json("workflows", "list", "--name", "echo")
    assert not [each for each in listed if each["key"].startswith("stripe-evt_r1")]
    assert stripe.send(good).status_code == 200
