"""Calls that an operation makes, each with a derived key: repeated, taken over, in any order."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx
import pytest

import oncekey
from oncekey import ConfigurationError, KeyInvalid, Ledger, TerminalError
from oncekey.core.model import NO_FINGERPRINT
from oncekey.outbound import (
    AsyncIdempotentTransport,
    IdempotentTransport,
    OutsideOperation,
    call,
    derived_key,
    inside,
    protect,
)
from tests.fixtures.processes import Start
from tests.fixtures.site import Reply, Site


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    made = oncekey.open("memory://")
    yield made
    made.close()


def client(**naming: Any) -> httpx.Client:
    inner = httpx.HTTPTransport()
    return httpx.Client(transport=IdempotentTransport(inner, **naming), trust_env=False)


def keys(site: Site) -> list[str | None]:
    return [each.headers.get("idempotency-key") for each in site.heard]


def failing(ledger: Ledger, function: Any, key: str = "order:1", **options: Any) -> None:
    """An attempt that makes its calls and then fails, so that the key is given back."""

    def run() -> None:
        function()
        raise ZeroDivisionError

    with suppress(ZeroDivisionError):
        ledger.once(key, run, **options)


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


# -- where there is none ---------------------------------------------------------------------


def test_outside_of_an_operation(site: Site) -> None:
    with client() as http:
        http.post(f"{site.url}/charges")
    assert keys(site) == [None]
    with pytest.raises(OutsideOperation), client(outside="refuse") as http:
        http.post(f"{site.url}/charges")
    with pytest.raises(OutsideOperation):
        derived_key("x")
    assert len(site.heard) == 1


def test_what_is_left_running_is_nobodys_retry(ledger: Ledger, site: Site) -> None:
    """A task that an operation has begun, and that outlives it, has no keys of the operation."""
    over = asyncio.Event()

    async def later() -> None:
        await over.wait()
        transport = AsyncIdempotentTransport()
        async with httpx.AsyncClient(transport=transport, trust_env=False) as http:
            await http.post(f"{site.url}/charges")

    async def run() -> None:
        tasks: list[asyncio.Task[None]] = []

        async def order() -> None:
            tasks.append(asyncio.create_task(later()))

        await ledger.aonce("order:1", order)
        over.set()
        await tasks[0]

    asyncio.run(run())
    assert keys(site) == [None]


def test_an_operation_inside_of_another_has_its_own(ledger: Ledger) -> None:
    seen: list[str] = []

    def inner() -> str:
        seen.append(derived_key("x"))
        return "done"

    def outer() -> None:
        seen.append(derived_key("x"))
        ledger.once("inner", inner)
        seen.append(derived_key("x"))

    ledger.once("outer", outer)
    assert seen[0] == seen[2] != seen[1]


def test_code_that_begins_by_itself(ledger: Ledger) -> None:
    ref = oncekey.Ref(oncekey.Scope(oncekey.namespace_of(), "orders"), "order:1")
    operation = oncekey.Operation(ref, NO_FINGERPRINT)
    decision = ledger.begin(operation)
    assert isinstance(decision, oncekey.Proceed)
    with inside(decision.claim):
        key = derived_key("x")
    decision.claim.release()
    again = ledger.begin(operation)
    assert isinstance(again, oncekey.Proceed)
    with inside(again.claim):
        assert derived_key("x") == key
    again.claim.release()


def test_threads_count_together(ledger: Ledger, site: Site) -> None:
    async def order() -> None:
        with client() as http:
            calls = (asyncio.to_thread(http.post, f"{site.url}/charges") for _ in range(8))
            await asyncio.gather(*calls)

    asyncio.run(ledger.aonce("order:1", order))
    assert len(set(keys(site))) == 8


# -- keys that a request brings ----------------------------------------------------------------


@pytest.mark.parametrize(
    "existing, agent, brought, kept",
    [
        ("auto", "python-httpx/1", "mine", True),
        ("auto", "python-httpx/1", "6ba7b810-9dad-41d1-80b4-00c04fd430c8", True),
        ("auto", "Stripe/v1 PythonBindings/16", "6ba7b810-9dad-41d1-80b4-00c04fd430c8", False),
        ("auto", "Stripe/v1 PythonBindings/16", "order-7", True),
        ("keep", "Stripe/v1 PythonBindings/16", "6ba7b810-9dad-41d1-80b4-00c04fd430c8", True),
        ("replace", "python-httpx/1", "mine", False),
    ],
)
def test_a_key_that_is_brought(
    ledger: Ledger, site: Site, existing: str, agent: str, brought: str, kept: bool
) -> None:
    headers = {"User-Agent": agent, "Idempotency-Key": brought}

    def order() -> None:
        with client(existing=existing) as http:
            http.post(f"{site.url}/charges", headers=headers)

    ledger.once("order:1", order)
    assert (keys(site) == [brought]) is kept


def test_another_header(ledger: Ledger, site: Site) -> None:
    def order() -> None:
        with client(header="PayPal-Request-Id") as http:
            http.post(f"{site.url}/charges")

    ledger.once("order:1", order)
    assert "idempotency-key" not in site.heard[0].headers
    assert len(site.heard[0].headers["paypal-request-id"]) == 36


def test_a_body_that_flows(ledger: Ledger, site: Site) -> None:
    def order() -> None:
        with client() as http:
            http.post(f"{site.url}/charges", content=iter([b"a", b"b"]))

    for _ in range(2):
        failing(ledger, order)
    assert len(set(keys(site))) == 1
    assert None not in keys(site)


def test_an_existing_client_is_protected(ledger: Ledger, site: Site) -> None:
    http = httpx.Client(trust_env=False)
    assert protect(protect(http)) is http

    ledger.once("order:1", lambda: http.post(f"{site.url}/charges") and None)
    http.close()
    assert None not in keys(site)
    with pytest.raises(ConfigurationError, match=r"not object"):
        protect(object())


@pytest.mark.parametrize(
    "wrong", [{"existing": "maybe"}, {"outside": "maybe"}, {"secret": "x" * 65}]
)
def test_what_cannot_be(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        IdempotentTransport(**wrong)


# -- taken over ----------------------------------------------------------------------------------


def charge_and_hang(said: Connection, store: str, url: str) -> None:
    def order() -> None:
        with client() as http:
            http.post(f"{url}/charges", json={"amount": 1})
        said.send("charged")
        said.recv()

    oncekey.open(store).once("order:1", order)


def test_a_takeover_sends_the_same_key(site: Site, start: Start, tmp_path: Path) -> None:
    """The process is killed after the call: whoever takes over makes it again, and is known."""
    store = f"sqlite:///{tmp_path}/oncekey.db"
    doomed = start(charge_and_hang, store, site.url)
    assert doomed.hear() == "charged"
    doomed.kill()
    heir = start(charge_and_hang, store, site.url)
    assert heir.hear() == "charged"
    heir.tell("go on")
    assert heir.join() == 0
    assert len(keys(site)) == 2
    assert len(set(keys(site))) == 1


def order_in_a_workflow(said: Connection, store: str, url: str) -> None:
    flows = oncekey.App()

    @flows.workflow
    async def order(ctx: oncekey.Context) -> str:
        await ctx.run("charge", charge)
        return "charged"

    async def charge() -> None:
        transport = AsyncIdempotentTransport()
        async with httpx.AsyncClient(transport=transport, trust_env=False) as http:
            await http.post(f"{url}/charges", json={"amount": 1})
        said.send("charged")
        await asyncio.to_thread(said.recv)

    async def run() -> None:
        async with flows.open(store):
            await (await flows.start(order, key="order:1")).result()

    asyncio.run(run())


def test_a_step_whose_process_was_killed_sends_the_same_key(
    site: Site, start: Start, tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path}/oncekey.db"
    doomed = start(order_in_a_workflow, store, site.url)
    assert doomed.hear() == "charged"
    doomed.kill()
    heir = start(order_in_a_workflow, store, site.url)
    assert heir.hear() == "charged"
    heir.tell("go on")
    assert heir.join() == 0
    assert len(keys(site)) == 2
    assert len(set(keys(site))) == 1


def test_a_final_failure_is_final(ledger: Ledger, site: Site) -> None:
    def order() -> None:
        with client() as http:
            http.post(f"{site.url}/charges")
        raise TerminalError("no stock")

    for _ in range(2):
        with pytest.raises(TerminalError):
            ledger.once("order:1", order)
    assert len(site.heard) == 1
