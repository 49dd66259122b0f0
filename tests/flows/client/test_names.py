"""One name is one intent: remembered, changed, given up, too old."""

import threading
from typing import Any

import pytest

from oncekey.client import (
    Backoff,
    Client,
    GaveUp,
    IntentChanged,
    IntentTooOld,
    MemoryIntents,
)
from tests.fixtures.colours import Colour
from tests.fixtures.frozen import FrozenClock
from tests.fixtures.scripted import DONE, keys, script
from tests.fixtures.site import Reply, Site


def test_a_finished_intent_is_remembered(colour: Colour, site: Site) -> None:
    script(site, DONE)
    client = colour.client(site.url)
    first = colour.do(client.intent("x").post("/", json={"a": 1, "b": 2}))
    again = colour.do(client.intent("x").post("/", json={"b": 2, "a": 1.0}))
    assert (again.source, again.attempts, again.content) == ("remembered", 0, first.content)
    assert (again.headers["x-operation-id"], again.key) == ("op_1", first.key)
    assert again.raise_for_status().json() == {"id": 7}
    assert len(site.heard) == 1


def test_it_is_forgotten_in_time(colour: Colour, site: Site) -> None:
    clock = FrozenClock()
    script(site, DONE)
    client = colour.client(site.url, clock=clock, remember=60.0)
    colour.do(client.intent("x").post("/"))
    clock.advance(60_001)
    colour.do(client.intent("x").post("/"))
    assert len(set(keys(site))) == 2


def test_or_at_once(colour: Colour, site: Site) -> None:
    script(site, DONE)
    client = colour.client(site.url, remember=0)
    for _ in range(2):
        colour.do(client.intent("x").post("/"))
    assert len(set(keys(site))) == 2


def test_an_answer_too_large_to_remember_is_asked_for_again(colour: Colour, site: Site) -> None:
    script(site, Reply(b"x" * (1 << 20) + b"y", 200))
    client = colour.client(site.url)
    for _ in range(2):
        assert len(colour.do(client.intent("x").post("/", json=1)).content) == (1 << 20) + 1
    assert len(site.heard) == 2
    assert len(set(keys(site))) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"url": "/orders", "json": {"item": "cake"}},
        {"url": "/orders?x=1", "json": {"item": "tea"}},
        {"url": "/others", "json": {"item": "tea"}},
        {"url": "/orders", "content": b"tea"},
    ],
)
def test_another_request_under_the_same_name_is_refused(
    colour: Colour, site: Site, other: dict[str, Any]
) -> None:
    script(site, Reply(status=500))
    client = colour.client(site.url, backoff=Backoff(attempts=1))
    with pytest.raises(GaveUp):
        colour.do(client.intent("x").post("/orders", json={"item": "tea"}))
    with pytest.raises(IntentChanged, match="'x' was captured with another request"):
        colour.do(client.intent("x").post(**other))
    assert len(site.heard) == 1
    (intent,) = client.pending()
    assert intent.url == f"{site.url}/orders"


def test_many_at_once_under_one_name(site: Site) -> None:
    """Two clicks: both are sent with the same key, and the server knows what to do."""
    colour = Colour(Client)
    client = colour.client(site.url)
    site.gate.clear()
    script(site, DONE)
    threads = [
        threading.Thread(target=lambda: client.intent("x").post("/", json=1)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert site.arrived.acquire(timeout=30)
    site.gate.set()
    for thread in threads:
        thread.join()
    assert len(keys(site)) == 4
    assert len(set(keys(site))) == 1
    colour.close()


def test_two_servers_never_share_a_name(colour: Colour, site: Site, other_site: Site) -> None:
    script(site, DONE)
    script(other_site, DONE)
    intents = colour.client(site.url).terms.intents
    for each in (site, other_site):
        colour.do(colour.client(each.url, intents=intents).intent("x").post("/"))
    assert keys(site) != keys(other_site)


def test_given_up(colour: Colour, site: Site) -> None:
    script(site, Reply(status=500), Reply(status=500), DONE)
    client = colour.client(site.url, backoff=Backoff(attempts=1))
    intent = client.intent("x")
    with pytest.raises(GaveUp):
        colour.do(intent.post("/"))
    colour.do(intent.abandon())
    assert client.pending() == []
    with pytest.raises(GaveUp):
        colour.do(client.intent("x").post("/other"))
    assert len(set(keys(site))) == 2


def test_an_old_intent_is_not_sent_blindly(colour: Colour, site: Site) -> None:
    clock = FrozenClock()
    script(site, Reply(status=500), DONE)
    client = colour.client(site.url, clock=clock, backoff=Backoff(attempts=1))
    with pytest.raises(GaveUp):
        colour.do(client.intent("x").post("/"))
    clock.advance(24 * 3600 * 1000 + 1)
    (intent,) = client.pending()
    with pytest.raises(IntentTooOld, match=r"recover\(\) asks"):
        colour.do(intent.resume())
    with pytest.raises(IntentTooOld):
        colour.do(client.intent("x").post("/"))
    assert len(site.heard) == 1
    assert colour.do(intent.resume(force=True)).status_code == 201


def test_captured_and_never_sent(colour: Colour, site: Site) -> None:
    client = colour.client(site.url)
    key = client.intent("x").key
    (intent,) = client.pending()
    assert (intent.key, intent.method, intent.url) == (key, None, None)
    assert colour.do(intent.resume()) is None
    assert colour.do(intent.recover()) is None
    script(site, DONE)
    assert colour.do(client.intent("x").post("/")).key == key


def test_a_finished_intent_is_not_sent_by_resume(colour: Colour, site: Site) -> None:
    script(site, Reply(status=500), DONE)
    client = colour.client(site.url, backoff=Backoff(attempts=1))
    with pytest.raises(GaveUp):
        colour.do(client.intent("x").post("/", json=1))
    (stale,) = client.pending()
    colour.do(client.intent("x").resume())
    # Whoever still has it from before learns the answer.
    for act in (stale.resume, stale.recover, client.intent("x").resume):
        answer = colour.do(act())
        assert (answer.status_code, answer.source) == (201, "remembered")
    assert len(site.heard) == 2


def test_one_that_was_given_up_is_not_resumed(colour: Colour, site: Site) -> None:
    script(site, Reply(status=500))
    client = colour.client(site.url, backoff=Backoff(attempts=1))
    with pytest.raises(GaveUp):
        colour.do(client.intent("x").post("/"))
    (stale,) = client.pending()
    colour.do(client.intent("x").abandon())
    assert colour.do(stale.resume()) is None
    assert len(site.heard) == 1


def test_other_headers_make_another_request(colour: Colour, site: Site) -> None:
    script(site, DONE)
    client = colour.client(site.url)
    colour.do(client.intent("x").post("/", headers={"Stripe-Account": "acct_1"}))
    with pytest.raises(IntentChanged):
        colour.do(client.intent("x").post("/", headers={"Stripe-Account": "acct_2"}))


def test_accounts_on_one_server_have_intents_of_their_own(colour: Colour, site: Site) -> None:
    script(site, DONE)
    intents = MemoryIntents()
    anna, bert = (
        colour.client(site.url, intents=intents, account=each) for each in ("anna", "bert")
    )
    colour.do(anna.intent("x").post("/"))
    assert colour.do(bert.intent("x").post("/")).source == "sent"
    assert len(set(keys(site))) == 2
