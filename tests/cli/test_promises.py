"""`oncekey promises`, beside a process that serves workflows."""

import json

import pytest

from tests.fixtures.workshop import Workshop


def waiting(shop: Workshop, number: int) -> str:
    """A workflow that waits for the promise with the key `stripe:ch_{number}`."""
    id_ = shop.start("order", number)
    shop.until(id_, "waiting")
    return id_


def test_a_promise_from_its_list_to_its_end(shop: Workshop) -> None:
    id_ = waiting(shop, 1)
    listed = shop.told("promises", "list", "--state", "pending")
    assert listed.split()[:7] == ["ID", "STATE", "KEY", "TIMEOUT", "CREATED", "SETTLED", "BY"]
    (row,) = [line.split() for line in listed.splitlines() if id_ in line]
    assert row[:3] == [f"{id_}:payment", "pending", "stripe:ch_1"]

    words = ["key:stripe:ch_1", "--value", '{"paid": 5}', "--request-key", "evt_1"]
    told = shop.told("promises", "resolve", *words)
    assert told == f"{id_}:payment: resolved\n"
    shown = shop.told("promises", "show", f"id:{id_}:payment")
    pairs = dict(line.split("  ", 1) for line in shown.splitlines())
    assert pairs["state"].strip() == "resolved"
    assert pairs["value"].strip() == '{"paid": 5}'
    assert pairs["settled by"].strip() == "evt_1"
    ended = shop.json("workflows", "show", id_, "--wait", "30s")
    assert ended["result"]["payment"] == {"paid": 5}


def test_the_first_resolution_counts(shop: Workshop) -> None:
    id_ = waiting(shop, 2)
    first = ["key:stripe:ch_2", "--value", "1", "--request-key", "evt_a"]
    answer = shop.json("promises", "resolve", *first)
    assert (answer["already_resolved"], answer["idempotency_key_new"]) == (False, True)
    again = shop.json("promises", "resolve", *first)
    assert (again["already_resolved"], again["idempotency_key_new"]) == (False, False)
    assert again["promise"] == answer["promise"]
    other = shop.told("promises", "resolve", "key:stripe:ch_2", "--value", "2")
    assert other == f"{id_}:payment: had been resolved already, by evt_a; it stays as it is\n"


def test_a_rejection_ends_the_workflow(shop: Workshop) -> None:
    id_ = waiting(shop, 3)
    error = '{"message": "card declined", "code": 7}'
    told = shop.told("promises", "reject", f"id:{id_}:payment", "--error", error)
    assert told == f"{id_}:payment: rejected\n"
    ended = shop.json("workflows", "show", id_, "--wait", "30s")
    assert ended["status"] == "failed"
    assert ended["error"]["message"] == "card declined"
    assert ended["error"]["data"] == json.loads(error)
    shown = shop.told("promises", "show", f"id:{id_}:payment")
    assert "error        promise-rejected: card declined\n" in shown


def test_a_resolution_is_parked_for_a_promise_to_come(shop: Workshop) -> None:
    words = ["key:stripe:ch_4", "--value", "4"]
    unknown = shop("promises", "resolve", *words)
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert unknown.stderr == (
        "error: there is no such promise; see `oncekey promises list`, "
        "or keep it for a key to come with --park\n"
    )
    parked = shop.json("promises", "resolve", *words, "--park", "--park-ttl", "1h")
    assert parked["promise"] is None
    assert parked["parked_until"] is not None
    ended = shop.json("workflows", "show", shop.start("order", 4), "--wait", "30s")
    assert ended["result"]["payment"] == 4


def test_waiting_for_a_promise(shop: Workshop) -> None:
    id_ = waiting(shop, 5)
    shop.told("promises", "resolve", "key:stripe:ch_5")
    shown = shop.json("promises", "show", "key:stripe:ch_5", "--wait", "30s")
    assert (shown["state"], shown["value"], shown["workflow_id"]) == ("resolved", None, id_)


def test_what_is_over_is_told(shop: Workshop) -> None:
    id_ = waiting(shop, 6)
    shop.told("workflows", "cancel", id_, "--request-key", "c6")
    done = shop("promises", "resolve", f"id:{id_}:payment")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: the promise is cancelled\n"


def test_a_page_ends_with_the_command_for_the_next(shop: Workshop) -> None:
    ids = [shop.start("approval", str(number), "--tenant", "pages") for number in range(3)]
    for id_ in ids:
        while shop("promises", "show", f"id:{id_}:decision", "--tenant", "pages").returncode:
            continue
    first = shop.told("promises", "list", "--tenant", "pages", "--limit", "2")
    more = first.splitlines()[-1]
    assert more.startswith("more: oncekey promises list --tenant pages --limit 2 --before pr_")
    shown = [line.split()[0] for line in first.splitlines()[1:3]]
    rest = shop.told("promises", *more.split()[3:])
    shown += [line.split()[0] for line in rest.splitlines()[1:]]
    assert sorted(shown) == sorted(f"{id_}:decision" for id_ in ids)


def test_tenants_do_not_see_each_other(shop: Workshop) -> None:
    waiting(shop, 7)
    assert shop("promises", "show", "key:stripe:ch_7", "--tenant", "acme").returncode == 1
    assert shop.told("promises", "list", "--tenant", "nobody") == "no promises\n"


@pytest.mark.parametrize(
    "words, code, told",
    [
        (["show", "stripe:ch_1"], 1, "write id:…, key:… or a token ct_…"),
        (["show", "ct_guessed"], 1, "there is no such promise; see `oncekey promises list`"),
        (["resolve", "key:a", "--value", "paid"], 2, "text needs quotes: '\"text\"'"),
        (["resolve", "key:a", "--park", "--park-ttl", "x"], 2, "'x' is not a duration"),
        (["list", "--before", "wf_1"], 2, "'wf_1' is not of a page"),
        (["resolve", "key:a", "--request-key", ""], 1, "key"),
    ],
)
def test_mistakes(shop: Workshop, words: list[str], code: int, told: str) -> None:
    done = shop("promises", *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert told in done.stderr
    assert "Traceback" not in done.stderr
