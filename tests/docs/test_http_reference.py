"""The page on HTTP: every situation of its table is brought about, and answered as it says."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from oncekey import Claim, Ledger, StoreUnavailable, TerminalError
from oncekey.asgi import IdempotencyMiddleware
from oncekey.testing import FrozenClock, memory_ledger
from oncekey.wire.problem import codes
from tests.fixtures.pages import DOCS

PAGE = (DOCS / "reference" / "http.md").read_text()
TABLE = PAGE.partition("## Situations")[2].partition("\n## ")[0]
ROWS = dict(re.findall(r"(?m)^\| (.+?) \| (.+ \|.*) \|$", TABLE)[1:])
OURS = {
    *("x-operation-id", "idempotent-replayed", "original-request-id", "idempotency-expires"),
    *("idempotency-stored", "retry-after", "link"),
}
KEY = {"Idempotency-Key": "tea-1"}

Ask = Callable[..., Awaitable[httpx.Response]]


class Shop:
    """An app whose handler does what the situation needs, behind the middleware."""

    def __init__(self, **options: Any) -> None:
        self.clock = FrozenClock()
        self.away = False
        self.runs = 0
        self.ledger: Ledger = memory_ledger(self.clock, faults=self._fault)
        self.handler: Callable[[Claim | None], Awaitable[bytes]] = self._plain
        self._app = IdempotencyMiddleware(self._answer, ledger=self.ledger, **options)

    async def ask(self, body: str = "tea", headers: dict[str, str] = KEY) -> httpx.Response:
        transport = httpx.ASGITransport(self._app)  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
            return await client.post("/orders", headers=headers, content=body)

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        self.runs += 1
        body = await self.handler(scope.get("oncekey.claim"))
        await send({"type": "http.response.start", "status": 201, "headers": []})
        await send({"type": "http.response.body", "body": body})

    async def _plain(self, claim: Claim | None) -> bytes:
        return b"order %d" % self.runs

    def _fault(self, point: str) -> None:
        if self.away:
            raise StoreUnavailable


async def no_key(shop: Shop) -> httpx.Response:
    return await shop.ask(headers={})


async def once(shop: Shop) -> httpx.Response:
    return await shop.ask()


async def twice(shop: Shop) -> httpx.Response:
    await shop.ask()
    return await shop.ask()


async def malformed(shop: Shop) -> httpx.Response:
    return await shop.ask(headers={"Idempotency-Key": "tea 1"})


async def other_body(shop: Shop) -> httpx.Response:
    await shop.ask()
    return await shop.ask("coffee")


async def meanwhile(shop: Shop) -> httpx.Response:
    running, go_on = asyncio.Event(), asyncio.Event()

    async def slow(claim: Claim | None) -> bytes:
        running.set()
        await go_on.wait()
        return b"order"

    shop.handler = slow
    first = asyncio.create_task(shop.ask())
    await running.wait()
    second = asyncio.create_task(shop.ask())
    # It comes as far as it can: to its answer, or to where it waits.
    for _ in range(100):
        await asyncio.sleep(0)
    go_on.set()
    await first
    assert shop.runs == 1
    return await second


async def after_a_crash(shop: Shop) -> httpx.Response:
    async def die(claim: Claim | None) -> bytes:
        assert claim is not None
        claim.abandon()
        raise asyncio.CancelledError

    usual, shop.handler = shop.handler, die
    with pytest.raises(asyncio.CancelledError):
        await shop.ask()
    shop.handler = usual
    return await shop.ask()


async def much_later(shop: Shop) -> httpx.Response:
    await shop.ask()
    shop.clock.advance(24 * 3600)
    answer = await shop.ask()
    assert shop.runs == 2
    return answer


async def for_good(shop: Shop) -> httpx.Response:
    async def fail(claim: Claim | None) -> bytes:
        raise TerminalError("no tea today")

    shop.handler = fail
    return await shop.ask()


async def away(shop: Shop) -> httpx.Response:
    shop.away = True
    answer = await shop.ask()
    shop.away = False
    return answer


SITUATIONS: dict[str, tuple[Callable[[Shop], Awaitable[httpx.Response]], dict[str, Any], int]] = {
    "no key, optional": (no_key, {}, 201),
    "no key, required": (no_key, {"required": True}, 400),
    "the key is malformed": (malformed, {}, 400),
    "a key where none may be": (once, {"key": "prohibited"}, 400),
    "first": (once, {}, 201),
    "finished before": (twice, {}, 201),
    'in flight, `in_flight = "conflict"`': (meanwhile, {}, 409),
    'in flight, `in_flight = "attach"`': (meanwhile, {"in_flight": "attach"}, 201),
    "the same key, another fingerprint": (other_body, {}, 422),
    'its process died, `takeover = "rerun"`': (after_a_crash, {}, 201),
    'its process died, `takeover = "refuse"`': (after_a_crash, {"takeover": "refuse"}, 409),
    "past its retention": (much_later, {}, 201),
    "the answer is streamed, or too large to keep": (once, {"max_stored_body": 1}, 201),
    "the same key after that": (twice, {"max_stored_body": 1}, 409),
    "the body is larger than `max_request_body`": (once, {"max_request_body": 1}, 413),
    "the handler raised `TerminalError`": (for_good, {}, 500),
    "the store is away": (away, {}, 503),
    "the store is away, `fail_open = true`": (away, {"fail_open": True}, 201),
}
# Two processes are needed for it: tests/faults has them.
ELSEWHERE = {"the claim was taken over meanwhile"}


def test_every_situation_is_looked_at() -> None:
    assert set(SITUATIONS) | ELSEWHERE == set(ROWS)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_answer_is_that_of_the_page(situation: str) -> None:
    bring_about, options, status = SITUATIONS[situation]
    answer = asyncio.run(bring_about(Shop(**options)))
    told, _, headers = ROWS[situation].rpartition(" | ")

    assert answer.status_code == status
    for code in re.findall(r"\[`([\w-]+)`\]", told):
        assert answer.json()["type"].endswith(f"/{code}")
        assert f"{status} [`{code}`]" in told
    wanted = headers if headers.strip() != "as there" else ROWS["finished before"]
    named = {name.lower() for name in re.findall(r"`([\w-]+)`", wanted)}
    assert OURS & set(answer.headers) == named & OURS


def test_statuses_and_problems_belong_together() -> None:
    webhooks = PAGE.partition("## Webhooks")[2]
    for status, code in re.findall(r"(\d{3}) \[`([\w-]+)`\]", PAGE.partition("## Webhooks")[0]):
        assert codes()[code][0] == int(status)
    for code in re.findall(r"problems/([\w-]+)\.md", webhooks):
        assert code in codes()
