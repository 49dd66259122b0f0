"""The guide to Stripe: followed from an empty folder, beside a Stripe that keeps to its keys."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from oncekey.testing import signed_delivery
from tests.fixtures.guided import Guided
from tests.fixtures.pages import DOCS
from tests.fixtures.served import Serve
from tests.fixtures.stripe_api import StripeApi, stripe_api

PAGE = DOCS / "how-to" / "stripe.md"
HOUR, SOON = "timedelta(hours=1)", "timedelta(milliseconds=100)"
EVENTS = 'resolve:"stripe:" + body.data.object.id'


class Shop(Guided):
    """The files of the page, served beside a Stripe."""

    def __init__(
        self,
        serve: Serve,
        folder: Path,
        stripe: tuple[StripeApi, str],
        words: dict[str, str] | None = None,
    ) -> None:
        self.stripe, api = stripe
        super().__init__(
            PAGE,
            serve,
            folder,
            # That of the tests is active already.
            acts={"python3 -m venv": lambda _: None},
            words=words,
            STRIPE_API=api,
            STRIPE_SECRET_KEY="sk_test_123",
        )

    def order(self, number: str, cents: int = 499) -> str:
        told = json.dumps({"id": number, "cents": cents})
        said = self.type(f"oncekey workflows start order --input '{told}' --key order:{number}")
        return said.split()[1]

    def end_of(self, execution: str) -> str:
        told = json.loads(self.type(f"oncekey workflows show {execution} --wait 30s --json"))
        return str(told.get("result") or told["error"]["message"])


@pytest.fixture
def stripe() -> Iterator[tuple[StripeApi, str]]:
    with stripe_api() as found:
        yield found


def test_the_guide_is_followed(serve: Serve, tmp_path: Path, stripe: Any) -> None:
    shop = Shop(serve, tmp_path, stripe)
    shop.guide.follow()
    assert len(shop.stripe.payments) == 1


def test_an_answer_that_gets_lost_makes_no_second_payment(
    serve: Serve, tmp_path: Path, stripe: Any
) -> None:
    shop = Shop(serve, tmp_path, stripe, words={HOUR: SOON})
    shop.stripe.lost = 1
    shop.open()
    order = shop.order("o-1")
    assert shop.end_of(order) == "not paid: canceled"
    assert [each["status"] for each in shop.stripe.payments] == ["canceled"]
    assert len(set(shop.stripe.keys[:2])) == 1


def test_a_kill_after_the_payment_makes_no_second_one(
    serve: Serve, tmp_path: Path, stripe: Any
) -> None:
    shop = Shop(serve, tmp_path, stripe, words={HOUR: SOON})
    served = shop.open()
    killed = threading.Event()

    def kill(made: dict[str, Any]) -> None:
        if not killed.is_set():
            served.kill()
            killed.set()

    shop.stripe.before_answer = kill
    order = shop.order("o-1")
    assert killed.wait(60)
    shop.open()
    assert shop.end_of(order) == "not paid: canceled"
    assert len(shop.stripe.payments) == 1
    assert len(set(shop.stripe.keys[:2])) == 1


def test_what_stripe_tells_first_is_found(serve: Serve, tmp_path: Path, stripe: Any) -> None:
    shop = Shop(serve, tmp_path, stripe)
    shop.open()
    made = shop.type(f"oncekey webhooks create --provider stripe --then '{EVENTS}' --json")
    source = json.loads(made[made.index("{") :])
    heard: list[dict[str, Any]] = []

    def deliver(payment: dict[str, Any]) -> None:
        event = {"id": "evt_1", "data": {"object": {**payment, "status": "succeeded"}}}
        sent = signed_delivery("stripe", event, source["secret"], url=source["url"])
        url = f"{shop.url}/api/v1/webhooks/stripe/{source['id']}"
        heard.append(httpx.post(url, headers=sent.headers, content=sent.body).json())

    shop.stripe.before_answer = deliver
    assert shop.end_of(shop.order("o-1")) == "paid"
    assert [each["status"] for each in heard] == ["parked"]


def test_a_payment_that_was_faster_than_the_end_stays_paid(
    serve: Serve, tmp_path: Path, stripe: Any
) -> None:
    shop = Shop(serve, tmp_path, stripe, words={HOUR: SOON})
    shop.stripe.before_answer = lambda made: made.update(status="succeeded")
    shop.open()
    assert shop.end_of(shop.order("o-1")) == "paid"


def test_what_stripe_refuses_is_not_asked_again(serve: Serve, tmp_path: Path, stripe: Any) -> None:
    shop = Shop(serve, tmp_path, stripe)
    shop.open()
    assert "must be greater" in shop.end_of(shop.order("o-1", cents=0))
    assert len(shop.stripe.keys) == 1
