"""Whoever lost the claim to a request for something else is not shown its answer."""

import io
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

import oncekey
from oncekey import Kind, Ledger, Operation, Outcome, Proceed, Ref, Scope
from oncekey.core.ports import Query
from oncekey.integrations.asgi import IdempotencyMiddleware as Asgi
from oncekey.integrations.wsgi import IdempotencyMiddleware as Wsgi

KEY = {"idempotency-key": "k", "content-type": "text/plain"}
REF = Ref(Scope(oncekey.namespace_of(), "POST /"), "k")
X, Y = (Operation(REF, letter * 16) for letter in (b"x", b"y"))


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    opened = oncekey.open("memory://")
    yield opened
    opened.close()


def purge(ledger: Ledger) -> None:
    """As an operator may who thinks that it hangs."""
    for found in ledger.list(Query()):
        assert ledger.purge(found.record.ref)


def test_an_operation_attaches_to_its_own_answer_only(ledger: Ledger) -> None:
    decision = ledger.begin(X)
    assert isinstance(decision, Proceed)
    decision.claim.settle(Outcome(Kind.VALUE, body=b"1"))
    own, any_ = ledger.attach(X, 0.0), ledger.attach(REF, 0.0)
    assert own is not None
    assert own == any_
    assert ledger.attach(Y, 0.0) is None


@pytest.mark.anyio
async def test_over_asgi(ledger: Ledger) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = (await receive())["body"]
        if body == b"first":
            purge(ledger)
            assert (await client.post("/", content=b"second", headers=KEY)).text == "second"
        await send({"type": "http.response.start", "status": 201, "headers": []})
        await send({"type": "http.response.body", "body": body})

    transport = httpx.ASGITransport(Asgi(app, ledger=ledger))
    async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
        answer = await client.post("/", content=b"first", headers=KEY)
    assert (answer.status_code, answer.json()["type"].split("/")[-1]) == (409, "claim-lost")


def test_over_wsgi(ledger: Ledger) -> None:
    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        body = environ["wsgi.input"].read()
        if body == b"first":
            purge(ledger)
            assert post(b"second").text == "second"
        start_response("201 Created", [])
        return [body]

    def post(body: bytes) -> httpx.Response:
        transport = httpx.WSGITransport(Wsgi(app, ledger=ledger), wsgi_errors=io.StringIO())
        with httpx.Client(transport=transport, base_url="http://app") as client:
            return client.post("/", content=body, headers=KEY)

    answer = post(b"first")
    assert (answer.status_code, answer.json()["type"].split("/")[-1]) == (409, "claim-lost")
