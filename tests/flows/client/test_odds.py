"""What is refused before anything is sent; other dialects, hooks, and what is kept."""

import asyncio
import gzip
import json
import os
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from oncekey import (
    ConfigurationError,
    InvalidInput,
    KeyInvalid,
    PayloadTooLarge,
    StoreUnavailable,
)
from oncekey.client import (
    STRIPE,
    Answered,
    AsyncClient,
    Attempted,
    Backoff,
    Captured,
    Client,
    Dialect,
    Failed,
    GaveUp,
    MemoryIntents,
    NotRecovered,
    OutcomeUnknown,
    Retrying,
    SqliteIntents,
)
from tests.fixtures.colours import Colour
from tests.fixtures.scripted import DONE, keys, ours, script
from tests.fixtures.site import Heard, Reply, Site


@pytest.mark.parametrize(
    "act, error, words",
    [
        (lambda intent: intent.request("GET", "/"), InvalidInput, "GET has no effect"),
        (lambda intent: intent.post("/", content=b"x" * (9 << 20)), PayloadTooLarge, "8 MiB"),
        (lambda intent: intent.post("/", content=_parts()), InvalidInput, "as a whole"),
        (lambda intent: intent.post("/", timeout=3), InvalidInput, "give timeout to the client"),
        (lambda intent: intent.post("http://127.0.0.2:1/"), InvalidInput, "each server"),
        (
            lambda intent: intent.post("/", headers={"idempotency-key": "mine"}),
            InvalidInput,
            "leave it out",
        ),
    ],
)
def test_what_cannot_be_sent(
    colour: Colour, site: Site, act: Callable[[Any], Any], error: type[Exception], words: str
) -> None:
    client = colour.client(site.url)
    with pytest.raises(error, match=words):
        colour.do(act(client.intent("x")))
    assert site.heard == []


async def _parts() -> Any:
    yield b"part"


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 513])
def test_a_name_is_text(colour: Colour, name: str) -> None:
    with pytest.raises(KeyInvalid):
        colour.client("http://shop").intent(name)


def test_an_address_that_cannot_be_asked(colour: Colour) -> None:
    client = colour.client("")
    with pytest.raises(httpx.UnsupportedProtocol):
        colour.do(client.intent("x").post("/orders"))
    assert colour.rests == []


def test_a_server_in_the_manner_of_stripe(colour: Colour, site: Site) -> None:
    script(
        site,
        Reply(b'{"error": {"code": "idempotency_key_in_use"}}', 409),
        Reply(b"{}", 500),
        Reply(b'{"id": "pi_1"}', 200, {"Idempotent-Replayed": "true", "Request-Id": "req_1"}),
    )
    client = colour.client(site.url, dialect=STRIPE)
    answer = colour.do(client.intent("x").post("/v1/payment_intents", data={"amount": 1}))
    assert (answer.json()["id"], answer.replayed, answer.operation_id) == ("pi_1", True, "req_1")
    assert len(set(keys(site))) == 1


def test_other_headers(colour: Colour, site: Site) -> None:
    script(site, Reply(b"", 200, {"X-Again": "TRUE"}))
    paypal = Dialect(key="PayPal-Request-Id", replayed="X-Again")
    client = colour.client(site.url, dialect=paypal)
    intent = client.intent("x")
    assert colour.do(intent.post("/")).replayed
    assert site.heard[0].headers["paypal-request-id"] == intent.key
    assert "idempotency-key" not in site.heard[0].headers


def test_hooks_are_told(colour: Colour, site: Site) -> None:
    script(site, Reply(status=503), DONE)
    client = colour.client(site.url)
    intent = client.intent("x")
    answer = colour.do(intent.post("/"))
    key = intent.key
    assert colour.events == [
        Captured("x", key),
        Attempted("x", key, 1),
        Retrying("x", key, 1, "status 503", 0.2),
        Attempted("x", key, 2),
        Answered("x", key, answer),
    ]


def test_a_hook_is_told_of_failure(colour: Colour, site: Site) -> None:
    script(site, ours("outcome-unknown"))
    client = colour.client(site.url)
    with pytest.raises(OutcomeUnknown) as raised:
        colour.do(client.intent("x").post("/"))
    assert colour.events[-1] == Failed("x", raised.value.key, raised.value)


def test_a_hook_that_fails_breaks_nothing(
    colour: Colour, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    script(site, DONE)

    def fail(_: object) -> None:
        raise ZeroDivisionError

    client = colour.client(site.url, on_event=fail)
    assert colour.do(client.intent("x").post("/")).status_code == 201
    assert "a hook of the client failed" in caplog.text


def test_a_packed_answer_can_be_read_again(colour: Colour, site: Site) -> None:
    script(site, Reply(gzip.compress(b'{"a": 1}'), 200, {"Content-Encoding": "gzip"}))
    client = colour.client(site.url)
    for source in ("sent", "remembered"):
        answer = colour.do(client.intent("x").post("/"))
        assert (answer.source, answer.json()) == (source, {"a": 1})


def test_a_client_of_httpx_that_is_brought(colour: Colour, site: Site) -> None:
    script(site, DONE)
    blocking = colour._kind.__name__ == "Client"
    http: Any = (httpx.Client if blocking else httpx.AsyncClient)(
        base_url=site.url, auth=("anna", "secret"), trust_env=False
    )
    client = colour.client("", http=http)
    assert colour.do(client.intent("x").post("/orders")).status_code == 201
    assert site.heard[0].headers["authorization"].startswith("Basic ")
    assert client.origin == site.url


def test_nothing_secret_is_kept(colour: Colour, site: Site, tmp_path: Any) -> None:
    script(site, Reply(status=500))
    secrets = {"Authorization": "Bearer s3cr3t-1", "Cookie": "s3cr3t-2", "X-API-Key": "s3cr3t-3"}
    client = colour.client(
        site.url,
        intents=tmp_path / "intents.db",
        headers=secrets,
        backoff=Backoff(attempts=1),
    )
    with pytest.raises(GaveUp) as raised:
        colour.do(
            client.intent("x").post(
                "/", json=1, headers={"Authorization": "Bearer s3cr3t-4", "X-Mine": "kept"}
            )
        )
    written = b"".join(each.read_bytes() for each in tmp_path.glob("intents.db*"))
    assert b"kept" in written
    assert b"s3cr3t" not in written
    assert "s3cr3t" not in str(raised.value)
    assert "s3cr3t" not in repr(client.pending())


def test_heard_is_what_was_frozen(colour: Colour, site: Site, tmp_path: Any) -> None:
    """After a restart the same bytes go out, with the credentials of the day."""
    script(site, Reply(status=500))
    file = tmp_path / "intents.db"
    first = colour.client(
        site.url, intents=file, backoff=Backoff(attempts=1), headers={"Authorization": "old"}
    )
    with pytest.raises(GaveUp):
        colour.do(
            first.intent("x").post(
                "/a?b=c%20d", json={"ü": [1.10]}, headers={"X-Mine": "1", "Content-Type": "text/x"}
            )
        )
    second = colour.client(site.url, intents=f"sqlite:///{file}", headers={"Authorization": "new"})
    script(site, DONE)
    (intent,) = second.pending()
    colour.do(intent.resume())
    before, after = site.heard
    dropped = {"authorization", "user-agent"}

    def told(heard: Heard) -> Any:
        lines = {name: value for name, value in heard.headers.items() if name not in dropped}
        return heard.method, heard.path, lines, heard.body

    assert told(before) == told(after)
    assert (before.headers["authorization"], after.headers["authorization"]) == ("old", "new")
    assert json.loads(after.body) == {"ü": [1.1]}


def test_whoever_stops_waiting_loses_nothing(site: Site) -> None:
    """A task that is cancelled in the middle leaves its intent pending."""

    async def run() -> None:
        site.gate.clear()
        async with AsyncClient(site.url, trust_env=False) as client:
            posting = asyncio.create_task(client.intent("x").post("/", json=1))
            assert await asyncio.to_thread(site.arrived.acquire, timeout=30)
            posting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await posting
            site.gate.set()
            (intent,) = client.pending()
            answer = await intent.resume()
            assert answer is not None
            assert answer.status_code == 201
            assert client.pending() == []

    script(site, DONE)
    asyncio.run(run())
    assert len(keys(site)) == 2
    assert len(set(keys(site))) == 1


def full(intents: SqliteIntents, spare: int) -> SqliteIntents:
    """Its file may grow by so many pages, and then there is no room."""
    intents.pending("")
    connection = intents._connection
    assert connection is not None
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages + spare}")
    return intents


def test_an_answer_that_cannot_be_kept_is_given_all_the_same(
    colour: Colour, site: Site, tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    script(site, Reply(b"x" * 500_000, 201))
    client = colour.client(site.url, intents=full(SqliteIntents(tmp_path / "intents.db"), 8))
    assert len(colour.do(client.intent("x").post("/")).content) == 500_000
    assert "cannot be kept" in caplog.text
    assert len(client.pending()) == 1


def test_nothing_is_sent_that_cannot_be_kept(colour: Colour, site: Site, tmp_path: Any) -> None:
    client = colour.client(site.url, intents=full(SqliteIntents(tmp_path / "intents.db"), 8))
    with pytest.raises(StoreUnavailable, match="full"):
        colour.do(client.intent("x").post("/", content=b"x" * 500_000))
    assert site.heard == []


@pytest.mark.parametrize("place", ["redis://x", "http://x/y.db"])
def test_intents_are_kept_in_a_file_or_in_memory(place: str) -> None:
    with pytest.raises(ConfigurationError, match=r"sqlite:///intents\.db"):
        Client("http://shop", intents=place)


def test_options_belong_to_the_client_that_is_brought() -> None:
    with httpx.Client() as http, pytest.raises(ConfigurationError, match="auth, headers"):
        Client("http://shop", http=http, headers={}, auth=("a", "b"))


def test_no_attempt_takes_longer_than_there_is_time(colour: Colour) -> None:
    limits: list[float] = []

    def answer(request: httpx.Request) -> httpx.Response:
        limits.append(request.extensions["timeout"]["read"])
        return httpx.Response(200)

    transport = httpx.MockTransport(answer)
    for deadline, timeout in ((7.0, 30.0), (60.0, 5.0), (7.0, None)):
        client = colour.client(
            "http://shop", transport=transport, backoff=Backoff(deadline=deadline), timeout=timeout
        )
        colour.do(client.intent("x").post("/"))
    assert [round(limit) for limit in limits] == [7, 5, 7]


@pytest.mark.parametrize("status", [200, 303, 404, 405])
def test_a_server_that_knows_no_recovery(colour: Colour, site: Site, status: int) -> None:
    """A page for every address is no answer to an intent."""
    script(site, Reply(status=500), Reply(b"<html>", status))
    client = colour.client(site.url, backoff=Backoff(attempts=1))
    with pytest.raises(GaveUp):
        colour.do(client.intent("x").post("/"))
    (intent,) = client.pending()
    with pytest.raises(NotRecovered, match="not marked as the stored one"):
        colour.do(intent.recover())
    assert len(client.pending()) == 1


def test_nobody_is_asked_in_a_tight_circle(colour: Colour, site: Site) -> None:
    script(site, ours("claim-lost"), DONE)
    colour.do(colour.client(site.url).intent("x").post("/"))
    assert colour.rests == [0.2]


def test_who_cannot_be_asked_is_not_asked(colour: Colour, site: Site) -> None:
    script(site, Reply(status=500))
    client = colour.client(site.url, dialect=STRIPE, backoff=Backoff(attempts=1))
    with pytest.raises(GaveUp):
        colour.do(client.intent("x").post("/"))
    (intent,) = client.pending()
    with pytest.raises(NotRecovered, match="cannot be asked"):
        colour.do(intent.recover())
    assert len(site.heard) == 1


def test_credentials_in_an_address_are_the_clients(
    colour: Colour, site: Site, tmp_path: Any
) -> None:
    script(site, Reply(status=500))
    file = tmp_path / "intents.db"
    url = site.url.replace("http://", "http://anna:{}@")
    first = colour.client(
        url.format("s3cr3t"),
        intents=file,
        params={"api_key": "s3cr3t"},
        backoff=Backoff(attempts=1),
    )
    with pytest.raises(GaveUp):
        colour.do(first.intent("x").post("/orders", params={"page": "1"}))
    assert site.heard[0].headers["authorization"].startswith("Basic ")
    assert "api_key=s3cr3t" in site.heard[0].path
    assert b"s3cr3t" not in b"".join(each.read_bytes() for each in tmp_path.glob("intents.db*"))
    assert "s3cr3t" not in repr(first.pending())

    second = colour.client(url.format("changed"), intents=file, params={"api_key": "changed"})
    script(site, DONE)
    (intent,) = second.pending()
    assert intent.url == f"{site.url}/orders?page=1"
    colour.do(intent.resume())
    assert site.heard[1].headers["authorization"] != site.heard[0].headers["authorization"]
    assert site.heard[1].path == "/orders?page=1&api_key=changed"


def test_credentials_of_one_call_are_sent_and_not_kept(
    colour: Colour, site: Site, tmp_path: Any
) -> None:
    script(site, Reply(status=500), DONE)
    client = colour.client(site.url, intents=tmp_path / "intents.db", backoff=Backoff(attempts=1))
    with pytest.raises(GaveUp):
        colour.do(client.intent("x").post("/", headers={"Authorization": "Bearer s3cr3t"}))
    (intent,) = client.pending()
    colour.do(intent.resume(headers={"Authorization": "Bearer new"}))
    assert [each.headers["authorization"] for each in site.heard] == ["Bearer s3cr3t", "Bearer new"]
    written = b"".join(each.read_bytes() for each in tmp_path.glob("intents.db*"))
    assert b"s3cr3t" not in written


def test_a_forked_process_has_a_line_of_its_own(site: Site) -> None:
    """On the connections of its parent it would get the answers of its parent."""
    made, brought = Client(site.url, trust_env=False), Client(http=httpx.Client(base_url=site.url))
    before = made.http
    child = os.fork()
    if child == 0:
        try:
            assert made.http is not before
            with pytest.raises(ConfigurationError, match="forked"):
                brought.intent("x").post("/")
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert made.http is before
    made.close()
    brought.http.close()


def test_what_is_brought_is_not_closed(tmp_path: Any) -> None:
    intents = MemoryIntents()
    with httpx.Client(base_url="http://shop") as http:
        with Client(http=http, intents=intents) as client:
            client.intent("x")
        assert not http.is_closed
        with pytest.raises(ConfigurationError, match="another server"):
            Client("http://bank", http=http)
