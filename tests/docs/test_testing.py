"""The page on testing: its blocks run, and what it says of signed deliveries is so."""

import time

import pytest

from oncekey.core.errors import SignatureInvalid
from oncekey.testing import SignedDelivery, signed_delivery
from oncekey.webhooks.delivery import Delivery, Event
from oncekey.webhooks.providers.registry import providers_of
from tests.fixtures.pages import DOCS, run_page

PAGE = (DOCS / "how-to" / "testing.md").read_text()
NOW = time.time()


def received(provider: str, sent: SignedDelivery, secret: str, now: float = NOW) -> Event:
    """What the provider's rules make of what was signed."""
    headers = tuple((name.encode(), value.encode()) for name, value in sent.headers.items())
    return providers_of()[provider].verify(Delivery(sent.url, headers, sent.body), [secret], now)


def test_what_the_page_signs_is_believed() -> None:
    page = run_page("how-to/testing.md")

    (item,) = received("stripe", page.delivery, "whsec_test", time.time()).items
    assert item.identifier == "evt_1"


@pytest.mark.parametrize("age", [300, 301])
def test_a_signature_is_too_old_when_the_page_says_so(age: int) -> None:
    assert "301 seconds ago, Stripe's signature is too old" in PAGE
    sent = signed_delivery("stripe", {"id": "evt_1"}, "whsec_test", now=int(NOW) - age)
    if age == 300:
        assert received("stripe", sent, "whsec_test", int(NOW)).items
    else:
        with pytest.raises(SignatureInvalid):
            received("stripe", sent, "whsec_test", int(NOW))


def test_a_name_in_a_header_is_given_or_made_up() -> None:
    named = [
        signed_delivery("github", {}, "s", headers={"X-GitHub-Delivery": "d-1"}),
        signed_delivery("github", {}, "s", headers={"X-GitHub-Delivery": "d-1"}),
        signed_delivery("github", {}, "s"),
        signed_delivery("github", {}, "s"),
    ]
    names = [received("github", each, "s").items[0].identifier for each in named]
    assert names[:2] == ["d-1", "d-1"]
    assert len(set(names)) == 3
