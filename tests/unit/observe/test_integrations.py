"""Applications of every kind tell the same of their requests, and nothing runs twice for it."""

import asyncio
import io
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import httpx
import pytest
from flask import Flask

import oncekey
from oncekey import Internal, Ledger
from oncekey.asgi import IdempotencyMiddleware as AsgiMiddleware
from oncekey.core.ports import Insert
from oncekey.flask import Idempotency
from oncekey.observe.meter import Meter
from oncekey.observe.metrics import Metrics
from oncekey.observe.watch import RequestWatch
from oncekey.stores.values import JsonCodec
from oncekey.wsgi import IdempotencyMiddleware as WsgiMiddleware
from tests.fixtures.http.cut import CutStore
from tests.fixtures.scraped import Scraped

Post = Callable[..., int]
ROUTE = oncekey.route("/orders/{id}")


@pytest.fixture
def meter() -> Meter:
    return Meter(store="memory")


@pytest.fixture
def ledger(meter: Meter) -> Iterator[Ledger]:
    opened = oncekey.open("memory://", observer=RequestWatch(meter))
    yield opened
    opened.close()


def page(meter: Meter) -> Scraped:
    return Scraped(Metrics(meter).page("")[1].decode())


async def asgi_app(scope: Any, receive: Any, send: Any) -> None:
    if scope["path"].endswith("/broken"):
        raise RuntimeError
    await receive()
    await send({"type": "http.response.start", "status": 201, "headers": []})
    await send({"type": "http.response.body", "body": b"made"})


def wsgi_app(environ: Any, start_response: Any) -> list[bytes]:
    start_response("201 Created", [("Content-Length", "4")])
    return [b"made"]


def posting_to_asgi(ledger: Ledger, **options: Any) -> Post:
    app = AsgiMiddleware(asgi_app, ledger=ledger, routes=[ROUTE], **options)

    def post(path: str, key: str | None = None, body: bytes = b"{}") -> int:
        async def send() -> int:
            transport = httpx.ASGITransport(app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://a") as client:
                headers = {} if key is None else {"Idempotency-Key": key}
                return (await client.post(path, content=body, headers=headers)).status_code

        return asyncio.run(send())

    return post


def posting_to_wsgi(ledger: Ledger, **options: Any) -> Post:
    app = WsgiMiddleware(wsgi_app, ledger=ledger, routes=[ROUTE], **options)

    def post(path: str, key: str | None = None, body: bytes = b"{}") -> int:
        statuses: list[str] = []
        environ: dict[str, Any] = {
            "REQUEST_METHOD": "POST",
            "PATH_INFO": path,
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.input": io.BytesIO(body),
        }
        if key is not None:
            environ["HTTP_IDEMPOTENCY_KEY"] = key
        answer: Any = app(environ, lambda status, *_: statuses.append(status))
        list(answer)
        if hasattr(answer, "close"):
            answer.close()
        return int(statuses[0][:3])

    return post


@pytest.mark.parametrize("kind", [posting_to_asgi, posting_to_wsgi])
def test_requests_are_told_alike(kind: Callable[..., Post], ledger: Ledger, meter: Meter) -> None:
    post = kind(ledger)
    statuses = [post("/orders/1", "k-1"), post("/orders/1", "k-1"), post("/orders/1", "k-1")]
    statuses += [post("/orders/1", "k-1", b"other"), post("/orders/2"), post("/orders/2", "t-x")]
    assert statuses == [201, 201, 201, 422, 201, 400]
    seen = page(meter)
    place = {"endpoint": "POST /orders/{id}"}
    whose = {**place, "tenant": "default", "project": "_tenant"}
    assert seen.value("idempotency_key_present_total", **whose, case="A") == 4
    assert seen.value("idempotency_cache_hit_total", **whose, status="201") == 2
    assert seen.value("idempotency_key_collision_total", **whose) == 1
    assert seen.value("idempotency_key_missing_total", **place, **{"class": "ACCEPTED"}) == 1
    assert seen.value("idempotency_key_invalid_total", **place, reason="prefix") == 1
    name = "oncekey_request_seconds_count"
    ways = {"new": 1, "replay": 2, "mismatch": 1, "passed": 1, "refused": 1}
    assert {way: seen.value(name, **place, way=way) for way in ways} == ways
    assert seen.value("oncekey_requests_in_flight") == 0


@pytest.mark.parametrize("kind", [posting_to_asgi, posting_to_wsgi])
def test_paths_without_a_route_are_one(
    kind: Callable[..., Post], ledger: Ledger, meter: Meter
) -> None:
    post = kind(ledger)
    for number in range(20):
        post(f"/made/up/{number}", f"k-{number}")
        post(f"/made/up/{number}", f"k-{number}")
    seen = page(meter)
    assert {each["endpoint"] for each in seen.labels("idempotency_cache_hit_total")} == {
        "POST {path}"
    }
    assert "/made/up" not in seen.text
    assert seen.value("idempotency_cache_hit_total") == 20


def test_an_app_that_breaks_has_failed(ledger: Ledger, meter: Meter) -> None:
    assert posting_to_asgi(ledger)("/orders/broken", "k") == 500
    seen = page(meter)
    assert seen.value("oncekey_request_seconds_count", way="failed") == 1
    assert seen.value("oncekey_requests_in_flight") == 0


def test_an_answer_that_breaks_off_has_failed(ledger: Ledger, meter: Meter) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def send(_: Any) -> None:
        return

    scope = {"type": "http", "method": "POST", "path": "/a", "headers": [], "query_string": b""}
    with pytest.raises(RuntimeError):
        asyncio.run(AsgiMiddleware(app, ledger=ledger)(scope, receive, send))
    assert page(meter).value("oncekey_request_seconds_count", way="failed") == 1


def test_a_stream_of_wsgi_is_over_when_it_is_closed(ledger: Ledger, meter: Meter) -> None:
    def app(environ: Any, start_response: Any) -> Iterator[bytes]:
        start_response("500 Broken" if environ["PATH_INFO"] == "/late" else "200 OK", [])
        yield b"a"
        if environ["PATH_INFO"] == "/broken":
            raise RuntimeError

    protected = WsgiMiddleware(app, ledger=ledger)
    name = "oncekey_request_seconds_count"

    def post(path: str) -> Any:
        environ = {"REQUEST_METHOD": "POST", "PATH_INFO": path, "wsgi.input": io.BytesIO()}
        return protected(environ, lambda *_: None)

    for number, path in enumerate(("/well", "/late", "/broken")):
        answer = post(path)
        assert page(meter).value("oncekey_requests_in_flight") == 1
        with nullcontext() if path != "/broken" else pytest.raises(RuntimeError):
            list(answer)
        assert page(meter).value(name) == number
        answer.close()
    assert page(meter).value("oncekey_requests_in_flight") == 0
    assert (page(meter).value(name, way="passed"), page(meter).value(name, way="failed")) == (1, 2)


def test_one_without_a_key_is_counted_once(ledger: Ledger, meter: Meter) -> None:
    inner = AsgiMiddleware(asgi_app, ledger=ledger, required=True)
    outer = AsgiMiddleware(inner, ledger=ledger)

    async def send() -> int:
        transport = httpx.ASGITransport(outer)
        async with httpx.AsyncClient(transport=transport, base_url="http://a") as client:
            return (await client.post("/orders", content=b"{}")).status_code

    assert asyncio.run(send()) == 400
    assert page(meter).value("idempotency_key_missing_total") == 1


@pytest.mark.parametrize("kind", [posting_to_asgi, posting_to_wsgi])
def test_what_runs_while_the_store_is_away(
    kind: Callable[..., Post], ledger: Ledger, meter: Meter
) -> None:
    cut: Any = CutStore(ledger.store)
    away = Ledger(cut, codec=JsonCodec(), observer=RequestWatch(meter))
    cut.cut(Insert)
    assert kind(away, fail_open=True)("/elsewhere", "k-1") == 201
    assert page(meter).value("oncekey_unprotected_total", endpoint="POST {path}") == 1
    away.close()


def test_flask_tells_of_its_routes(ledger: Ledger, meter: Meter) -> None:
    app = Flask("shop")
    Idempotency(app, ledger=ledger, required=True)

    @app.post("/orders/<int:number>")
    def order(number: int) -> tuple[str, int]:
        if number == 9:
            raise RuntimeError
        return "made", 201

    client = app.test_client()
    key = {"Idempotency-Key": "k-1"}
    statuses = [client.post("/orders/1", headers=key).status_code for _ in range(2)]
    statuses += [client.post("/orders/1").status_code]
    statuses += [client.post("/orders/9", headers={"Idempotency-Key": "k-9"}).status_code]
    assert statuses == [201, 201, 400, 500]
    seen = page(meter)
    name = "oncekey_request_seconds_count"
    place = "POST /orders/<int:number>"
    ways = {"new": 1, "replay": 1, "refused": 1, "failed": 1}
    assert {way: seen.value(name, endpoint=place, way=way) for way in ways} == ways
    assert seen.value("idempotency_key_missing_total", **{"class": "REQUIRED_A"}) == 1
    assert seen.value("oncekey_requests_in_flight") == 0


def test_handlers_that_derive_their_keys(ledger: Ledger, meter: Meter) -> None:
    feed = Internal(ledger, "feed", namespace="t-acme:shop:service:feed")
    for _ in range(3):
        feed.once(feed.token("item-7"), lambda: "stored")
    assert feed.note({"Idempotent-Replayed": "true"})
    seen = page(meter)
    whose = {"tenant": "acme", "project": "shop", "endpoint": "feed"}
    assert seen.value("handler_internal_dedup_hit_total", **whose) == 3
    assert seen.value("idempotency_key_present_total", **whose, case="C") == 3
    assert seen.value("idempotency_cache_hit_total", **whose, status="succeeded") == 2
