"""Calls that an operation makes, each with a derived key: repeated, broken off, in any order."""

import asyncio
from contextlib import suppress
from typing import Any

import httpx
import pytest

import oncekey
from oncekey import KeyInvalid, Ledger
from oncekey.outbound import (
    AsyncIdempotentTransport,
    call,
    derived_key,
)
from tests.fixtures.calling import client, failing, keys
from tests.fixtures.site import Reply, Site


def test_every_attempt_sends_the_same_keys(ledger: Ledger, site: Site) -> None:
    def order() -> None:
        with client() as http:
            http.post(f"{site.url}/charges", json={"amount": 1})
            http.post(f"{site.url}/charges", json={"amount": 2})
            http.post(f"{site.url}/letters/1?draft=1")
            http.get(f"{site.url}/charges")

    site.answer = lambda _: Reply(b"{}")
    for _ in range(2):
        failing(ledger, order)
    first, second = keys(site)[:4], keys(site)[4:]
    assert first == second
    assert first[3] is None
    assert len(set(first[:3])) == 3


def test_async_calls_too(ledger: Ledger, site: Site) -> None:
    async def order() -> None:
        transport = AsyncIdempotentTransport()
        async with httpx.AsyncClient(transport=transport, trust_env=False) as http:
            await asyncio.gather(*(http.post(f"{site.url}/{n}") for n in range(5)))
        raise ZeroDivisionError

    for _ in range(2):
        with suppress(ZeroDivisionError):
            asyncio.run(ledger.aonce("order:1", order))
    sent = {each.path: set[Any]() for each in site.heard}
    for each in site.heard:
        sent[each.path].add(each.headers["idempotency-key"])
    assert [len(found) for found in sent.values()] == [1] * 5
    assert len(set.union(*sent.values())) == 5


def test_tenants_have_keys_of_their_own_that_tell_nothing(ledger: Ledger, site: Site) -> None:
    def order() -> None:
        with client() as http:
            http.post(f"{site.url}/charges")

    for tenant in ("acme", "globex"):
        failing(ledger, order, "secret-plan", namespace=oncekey.namespace_of(tenant))
    one, two = keys(site)
    assert one != two
    told = str([each.headers for each in site.heard])
    assert not any(word in told for word in ("acme", "globex", "secret-plan", "order"))


def test_a_secret_makes_keys_that_nobody_can_guess(ledger: Ledger, site: Site) -> None:
    def order(secret: str | bytes) -> None:
        with client(secret=secret) as http:
            http.post(f"{site.url}/charges")

    for secret in ("", "one", b"one", "two"):
        failing(ledger, lambda secret=secret: order(secret))
    plain, one, same, two = keys(site)
    assert one == same
    assert len({plain, one, two}) == 3


def test_a_call_that_is_repeated_by_hand_is_the_same_call(ledger: Ledger, site: Site) -> None:
    """An attempt in which a call had to be repeated counts like one in which it had not."""
    replies = [Reply(status=503), Reply(b"{}"), Reply(b"{}"), Reply(b"{}"), Reply(b"{}")]
    site.answer = lambda _: replies.pop(0)

    def order() -> None:
        with client() as http:
            while http.post(f"{site.url}/charges", json=1).status_code != 200:
                pass
            http.post(f"{site.url}/charges", json=2)

    for _ in range(2):
        failing(ledger, order)
    lost, first, second, again, last = keys(site)
    assert lost == first == again
    assert second == last != first


def test_so_is_one_whose_answer_never_came(ledger: Ledger, site: Site) -> None:
    def order() -> None:
        with client() as http:
            site.stop()
            with pytest.raises(httpx.ConnectError):
                http.post(f"{site.url}/charges", json=1)
            site.start()
            http.post(f"{site.url}/charges", json=1)

    for _ in range(2):
        failing(ledger, order)
    assert len(keys(site)) == 2
    assert len(set(keys(site))) == 1


def test_names_for_calls_that_come_in_any_order(ledger: Ledger, site: Site) -> None:
    def order(*customers: str) -> None:
        with client() as http:
            for each in customers:
                with call(f"charge:{each}"):
                    http.post(f"{site.url}/charges", json=each)

    failing(ledger, lambda: order("anna", "bert"))
    failing(ledger, lambda: order("bert", "anna"))
    anna, bert, bert_again, anna_again = keys(site)
    assert (anna, bert) == (anna_again, bert_again)
    assert anna != bert


def test_for_what_httpx_does_not_send(ledger: Ledger) -> None:
    seen: list[str] = []
    for _ in range(2):
        failing(ledger, lambda: seen.extend([derived_key("a"), derived_key("b")]))
    assert seen[:2] == seen[2:]
    assert seen[0] != seen[1]
    failing(ledger, lambda: seen.append(derived_key("a", secret="x")))
    assert seen[4] != seen[0]
    with pytest.raises(KeyInvalid):
        ledger.once("other", lambda: derived_key(""))
