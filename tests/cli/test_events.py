"""`oncekey events`, beside a process that serves workflows."""

import pytest

from tests.fixtures.workshop import Workshop

KEY = "parcel:sent"


def test_an_event_wakes_what_it_fits(shop: Workshop) -> None:
    one, two = shop.start("parcel", 1), shop.start("parcel", 2)
    for id_ in (one, two):
        (wait,) = shop.until(id_, "waiting")["waits"]
        assert (wait["kind"], wait["name"]) == ("event", KEY)
    shown = shop.told("workflows", "show", one)
    assert "where input.order.number == 1" in shown

    words = [KEY, "--data", '{"order": {"number": 1}}', "--idempotency-key", "evt_1"]
    told = shop.told("events", "publish", *words)
    assert told.endswith(": fitted 1 wait\n")
    assert shop.json("workflows", "show", one, "--wait", "30s")["result"] == {
        "order": {"number": 1}
    }
    assert shop.json("workflows", "show", two)["status"] == "waiting"

    event_id = told.split(":")[0]
    again = shop.told("events", "publish", *words)
    assert again == f"{event_id}: fitted 1 wait; it was published before with this key\n"
    assert shop.json("events", "publish", *words) == {
        "event_id": event_id,
        "matched": 1,
        "idempotency_key_used": True,
        "idempotency_key_new": False,
    }
    other = shop("events", "publish", KEY, "--data", "{}", "--idempotency-key", "evt_1")
    assert (other.returncode, other.stdout) == (1, "")
    assert other.stderr == (
        "error: the key 'evt_1' was first used for another event; use a new key for a new event\n"
    )


def test_a_condition_that_cannot_be_evaluated_is_shown(shop: Workshop) -> None:
    id_ = shop.start("parcel", 3)
    shop.until(id_, "waiting")
    shop.told("events", "publish", KEY, "--data", '{"order": null}')
    (wait,) = shop.json("workflows", "show", id_)["waits"]
    assert wait["trouble"]
    assert f"trouble: {wait['trouble']}" in shop.told("workflows", "show", id_)


def test_recent_events_are_listed(shop: Workshop) -> None:
    words = ["stock:low", "--data", '{"left": 2}', "--header", "source=scale", "--tenant", "acme"]
    shop.told("events", "publish", *words)
    (event,) = shop.json("events", "list", "--tenant", "acme", "--key", "stock:low")
    assert (event["key"], event["data"]) == ("stock:low", {"left": 2})
    assert event["headers"] == {"source": "scale"}
    table = shop.told("events", "list", "--tenant", "acme").splitlines()
    assert table[0].split() == ["ID", "KEY", "DATA", "CREATED", "EXPIRES"]
    assert table[1].split()[:2] == [event["id"], "stock:low"]
    assert shop.told("events", "list", "--tenant", "nobody") == "no events\n"


@pytest.mark.parametrize(
    "words, code, told",
    [
        (["publish", "a", "--data", "{"], 2, "this is not JSON"),
        (["publish", "a", "--header", "b"], 2, "'b' is not NAME=VALUE"),
        (["publish", ""], 1, "the key of an event is 1 to 200 printable characters"),
    ],
)
def test_mistakes(shop: Workshop, words: list[str], code: int, told: str) -> None:
    done = shop("events", *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert told in done.stderr
