"""Where an operation begins and ends, for the calls that it makes; and who takes it over."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from contextvars import copy_context
from multiprocessing.connection import Connection
from pathlib import Path

import httpx
import pytest

import oncekey
from oncekey import Ledger, TerminalError
from oncekey.core.model import NO_FINGERPRINT
from oncekey.outbound import (
    AsyncIdempotentTransport,
    IdempotentTransport,
    OutsideOperation,
    call,
    derived_key,
    inside,
)
from tests.fixtures.calling import client, failing, keys
from tests.fixtures.processes import Start
from tests.fixtures.site import Reply, Site


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


def test_what_is_left_of_a_failed_attempt_sends_the_keys_of_its_retry(
    ledger: Ledger, site: Site
) -> None:
    """A thread cannot be stopped: its call comes after that of the retry, and is known."""
    late = threading.Event()
    threads: list[threading.Thread] = []

    def charge() -> None:
        with client() as http:
            http.post(f"{site.url}/charges", json=1)

    def charge_late() -> None:
        late.wait()
        charge()

    def failing_order() -> None:
        context = copy_context()
        threads.append(threading.Thread(target=context.run, args=(charge_late,)))
        threads[0].start()
        raise TimeoutError

    with suppress(TimeoutError):
        ledger.once("order:1", failing_order)
    ledger.once("order:1", charge)
    late.set()
    threads[0].join()
    first, second = keys(site)
    assert first == second
    assert first is not None


def test_an_answer_that_breaks_off_is_none(ledger: Ledger) -> None:
    sent: list[str] = []

    class Broken(httpx.SyncByteStream, httpx.AsyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            yield b"half of "
            raise httpx.ReadError("it breaks off")

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for part in self:
                yield part

    def hear(request: httpx.Request) -> httpx.Response:
        sent.append(request.headers["idempotency-key"])
        whole = len(sent) % 2 == 0
        return httpx.Response(200, stream=None if whole else Broken())

    def order() -> None:
        with httpx.Client(transport=IdempotentTransport(httpx.MockTransport(hear))) as http:
            with pytest.raises(httpx.ReadError):
                http.post("http://bank/charges", json=1)
            http.post("http://bank/charges", json=1)

    async def aorder() -> None:
        transport = AsyncIdempotentTransport(httpx.MockTransport(hear))
        async with httpx.AsyncClient(transport=transport) as http:
            with pytest.raises(httpx.ReadError):
                await http.post("http://bank/charges", json=1)
            await http.post("http://bank/charges", json=1)

    ledger.once("order:1", order)
    asyncio.run(ledger.aonce("order:2", aorder))
    assert len(sent) == 4
    assert (sent[0], sent[2]) == (sent[1], sent[3])


def test_better_credentials_do_not_shift_the_count(ledger: Ledger, site: Site) -> None:
    replies = [Reply(status=401), Reply(b"{}"), Reply(b"{}")]
    site.answer = lambda _: replies.pop(0)

    def order(*tokens: str) -> None:
        with client() as http:
            for token in tokens:
                http.post(f"{site.url}/charges", headers={"Authorization": token})

    failing(ledger, lambda: order("old", "new"))
    failing(ledger, lambda: order("new"))
    assert len(keys(site)) == 3
    assert len(set(keys(site))) == 1


@pytest.mark.parametrize("existing", ["auto", "replace"])
def test_httpx_may_send_it_again_by_itself(ledger: Ledger, site: Site, existing: str) -> None:
    challenge = {"WWW-Authenticate": 'Digest realm="r", nonce="n", qop="auth"'}
    replies = [Reply(status=401, headers=challenge), Reply(b"{}")]
    site.answer = lambda _: replies.pop(0)

    def order() -> None:
        with client(existing=existing) as http:
            http.post(f"{site.url}/charges", auth=httpx.DigestAuth("anna", "secret"))

    ledger.once("order:1", order)
    assert len(keys(site)) == 2
    assert len(set(keys(site))) == 1


def test_names_inside_of_names(ledger: Ledger, site: Site) -> None:
    def charge(http: httpx.Client, customer: str) -> None:
        with call("charge"):
            http.post(f"{site.url}/charges", json=customer)

    def order(*customers: str) -> None:
        with client() as http:
            for each in customers:
                with call(f"customer:{each}"):
                    charge(http, each)

    failing(ledger, lambda: order("anna", "bert"))
    failing(ledger, lambda: order("bert", "anna"))
    anna, bert, bert_again, anna_again = keys(site)
    assert (anna, bert) == (anna_again, bert_again)


def test_a_workflow_is_no_part_of_the_operation_that_starts_it(ledger: Ledger) -> None:
    seen: list[str] = []
    flows = oncekey.App()

    @flows.workflow
    async def order(ctx: oncekey.Context) -> None:
        try:
            seen.append(derived_key("x"))
        except OutsideOperation as error:
            seen.append(error.code)

    async def begin() -> None:
        await (await flows.start(order)).result()

    async def run() -> None:
        async with flows.open("memory://"):
            await ledger.aonce("request:1", begin)

    asyncio.run(run())
    assert seen == ["outside-operation"]


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
