"""`oncekey.testing`: frozen time, a ledger in memory, and deliveries that their provider signs."""

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest

from oncekey import InProgress, Operation, Proceed, Ref, Scope
from oncekey.core.errors import InvalidInput
from oncekey.testing import FrozenClock, memory_ledger, signed_delivery
from oncekey.webhooks.delivery import Delivery
from tests.fixtures.deliveries import DECLARED, NOW, PROVIDERS, SAMPLES, URL, secret_of


def test_a_frozen_clock_stands_still_until_it_is_moved() -> None:
    clock = FrozenClock(now=datetime(2026, 5, 1, 12, tzinfo=UTC))
    first = (clock.now(), clock.steady())
    assert (clock.now(), clock.steady()) == first
    clock.advance(1.5)
    assert (clock.now(), clock.steady()) == (first[0] + 1500, first[1] + 1500)


def test_the_start_is_a_moment_or_seconds_since_1970() -> None:
    noon = datetime(2026, 5, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    assert FrozenClock(noon).now() == FrozenClock(noon.timestamp()).now() == 1777636800000


def test_a_moment_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="say which zone"):
        FrozenClock(datetime(2026, 5, 1))  # noqa: DTZ001


def test_time_does_not_pass_backwards_but_the_wall_clock_may_step() -> None:
    clock = FrozenClock(now=1000)
    with pytest.raises(ValueError, match="backwards"):
        clock.advance(-1)
    clock.set(10)
    assert (clock.now(), clock.steady()) == (10_000, 0)


def test_a_key_expires_when_the_clock_says_so() -> None:
    clock = FrozenClock()
    ledger = memory_ledger(clock)
    runs = iter(range(10))
    assert ledger.once("k", lambda: next(runs)) == 0
    clock.advance(24 * 3600 - 0.001)
    assert ledger.once("k", lambda: next(runs)) == 0
    clock.advance(0.001)
    assert ledger.once("k", lambda: next(runs)) == 1


def test_options_are_those_of_open() -> None:
    ledger = memory_ledger(retention={"nightly": 60})
    assert ledger.retention()["nightly"] == 60


def test_two_ledgers_share_nothing() -> None:
    operation = Operation(Ref(Scope("t-a:b:user:c", "e"), "k"))
    assert isinstance(memory_ledger().begin(operation), Proceed)
    assert isinstance(memory_ledger().begin(operation), Proceed)


def test_a_key_in_flight_is_refused() -> None:
    ledger = memory_ledger()

    def again() -> int:
        return ledger.once("k", lambda: 2)

    with pytest.raises(InProgress):
        ledger.once("k", again)


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_what_is_signed_for_a_test_passes(name: str) -> None:
    sample = SAMPLES[name]
    declared = {each.name: each for each in DECLARED}
    headers = {key.decode(): value.decode() for key, value in sample.headers}
    secret = secret_of(name)
    made = signed_delivery(
        declared.get(name, name), sample.body, secret, url=URL, headers=headers, now=NOW
    )
    pairs = tuple((key.encode(), value.encode()) for key, value in made.headers.items())
    event = PROVIDERS[name].verify(Delivery(made.url, pairs, made.body), [secret], NOW)
    assert tuple(item.identifier for item in event.items) == sample.names


def test_a_delivery_for_a_test_is_signed_now_unless_told_otherwise() -> None:
    body = {"id": "evt_1", "text": "é"}
    made = signed_delivery("stripe", body, "whsec_test")
    assert made.body == b'{"id":"evt_1","text":"\\u00e9"}'
    pairs = tuple((key.encode(), value.encode()) for key, value in made.headers.items())
    delivery = Delivery(made.url, pairs, made.body)
    assert PROVIDERS["stripe"].verify(delivery, ["whsec_test"], time.time()).items
    old = signed_delivery("stripe", body, "whsec_test", now=datetime(2026, 1, 1, tzinfo=UTC))
    assert old.headers["stripe-signature"].startswith("t=1767225600,v1=")


def test_a_form_for_a_test_is_text() -> None:
    made = signed_delivery("twilio", "MessageSid=SM1&MessageStatus=sent", "12345")
    assert made.headers["content-type"] == "application/x-www-form-urlencoded"
    assert "x-twilio-signature" in made.headers


def test_an_unknown_provider_is_told_which_there_are() -> None:
    with pytest.raises(InvalidInput, match="no provider 'strype'; there are adyen, github"):
        signed_delivery("strype", {}, "s")
