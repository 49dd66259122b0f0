"""A client, and a server that answers as it is told: what is sent, and how often."""

from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from oncekey import KeyReused as KeyReusedThere
from oncekey.client import (
    Backoff,
    CredentialsRefused,
    GaveUp,
    KeyRefused,
    KeyReused,
    OutcomeNotKept,
    OutcomeUnknown,
    Redirected,
)
from tests.fixtures.colours import Colour
from tests.fixtures.frozen import FrozenClock
from tests.fixtures.scripted import DONE, keys, ours, script
from tests.fixtures.site import Reply, Site


def test_a_first_answer(colour: Colour, site: Site) -> None:
    script(site, DONE)
    client = colour.client(site.url, headers={"X-Shop": "1"})
    intent = client.intent("checkout:42")
    answer = colour.do(intent.post("/orders", json={"item": "tea"}, headers={"X-Try": "a"}))

    assert (answer.status_code, answer.json(), answer.is_success) == (201, {"id": 7}, True)
    assert (answer.source, answer.attempts, answer.replayed) == ("sent", 1, False)
    assert (answer.operation_id, answer.key) == ("op_1", intent.key)
    (heard,) = site.heard
    assert (heard.method, heard.path, heard.body) == ("POST", "/orders", b'{"item":"tea"}')
    assert heard.headers["idempotency-key"] == intent.key
    assert (heard.headers["x-shop"], heard.headers["x-try"]) == ("1", "a")
    assert client.pending() == []


@pytest.mark.parametrize("verb", ["post", "put", "patch", "delete"])
def test_every_verb(colour: Colour, verb: str) -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(204)

    client = colour.client("http://shop", transport=httpx.MockTransport(answer))
    done = colour.do(getattr(client.intent("x"), verb)("/a?b=1", params={"c": "2"}))
    assert done.status_code == 204
    assert (seen[0].method, str(seen[0].url)) == (verb.upper(), "http://shop/a?c=2")


def test_what_may_change_is_sent_again_with_the_same_key_and_body(
    colour: Colour, site: Site
) -> None:
    script(site, Reply(status=503), Reply(status=429), Reply(status=500), DONE)
    client = colour.client(site.url)
    answer = colour.do(client.intent("x").post("/", data={"a": "1"}, files={"f": b"file"}))

    assert (answer.status_code, answer.attempts) == (201, 4)
    assert len(set(keys(site))) == 1
    # Also its boundary, which is drawn once.
    assert len({(each.body, each.headers["content-type"]) for each in site.heard}) == 1
    assert colour.rests == [0.2, 0.4, 0.8]


def test_the_server_says_when(colour: Colour, site: Site) -> None:
    script(site, Reply(status=503, headers={"Retry-After": "3"}), DONE)
    colour.do(colour.client(site.url).intent("x").post("/"))
    assert colour.rests == [3.75]


def test_still_running_uses_up_time_and_no_attempts(colour: Colour, site: Site) -> None:
    script(site, *[ours("request-in-progress")] * 20, DONE)
    client = colour.client(site.url, backoff=Backoff(attempts=2))
    assert colour.do(client.intent("x").post("/")).attempts == 21
    assert colour.rests == [1.25] * 20


def test_nobody_there(colour: Colour, site: Site) -> None:
    site.stop()
    client = colour.client(site.url, backoff=Backoff(attempts=3))
    with pytest.raises(GaveUp, match=r"after 3 attempts.*ConnectError") as raised:
        colour.do(client.intent("x").post("/", json=1))
    assert raised.value.retryable
    assert isinstance(raised.value.__cause__, httpx.ConnectError)
    (intent,) = client.pending()
    assert (intent.name, intent.method, intent.url) == ("x", "POST", f"{site.url}/")

    site.start()
    script(site, DONE)
    answer = colour.do(intent.resume())
    assert (answer.status_code, keys(site)) == (201, [raised.value.key])
    assert client.pending() == []


def test_the_same_intent_goes_on(colour: Colour, site: Site) -> None:
    script(site, Reply(status=500), DONE)
    intent = colour.client(site.url, backoff=Backoff(attempts=1)).intent("x")
    with pytest.raises(GaveUp):
        colour.do(intent.post("/"))
    assert (intent.method, intent.url) == ("POST", f"{site.url}/")
    assert colour.do(intent.resume()).attempts == 1
    assert len(set(keys(site))) == 1


def test_a_connection_that_breaks_off(colour: Colour) -> None:
    left: list[type[httpx.TransportError]] = [
        httpx.ReadTimeout, httpx.RemoteProtocolError, httpx.WriteError, httpx.PoolTimeout,
    ]  # fmt: skip
    sent: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.headers["idempotency-key"])
        if left:
            raise left.pop()("broken")
        return httpx.Response(200)

    client = colour.client("http://shop", transport=httpx.MockTransport(answer))
    assert colour.do(client.intent("x").post("/")).attempts == 5
    assert len(set(sent)) == 1


def test_time_is_up(colour: Colour, site: Site) -> None:
    script(site, Reply(b"later", 503, {"Retry-After": "50"}))
    client = colour.client(site.url, backoff=Backoff(deadline=40))
    with pytest.raises(GaveUp, match="status 503") as raised:
        colour.do(client.intent("x").post("/"))
    assert raised.value.answer is not None
    assert raised.value.answer.text == "later"
    assert colour.rests == []
    assert len(client.pending()) == 1


@pytest.mark.parametrize("status", [400, 404, 409, 422])
def test_the_application_refuses(colour: Colour, site: Site, status: int) -> None:
    script(site, Reply(b'{"why": 1}', status, {"Content-Type": "application/json"}))
    client = colour.client(site.url)
    answer = colour.do(client.intent("x").post("/"))
    assert (answer.status_code, answer.json(), len(site.heard)) == (status, {"why": 1}, 1)
    assert client.pending() == []
    with pytest.raises(httpx.HTTPStatusError):
        answer.raise_for_status()


@pytest.mark.parametrize(
    "code, error, pending",
    [
        ("idempotency-key-reused", KeyReused, False),
        ("outcome-not-kept", OutcomeNotKept, False),
        ("outcome-unknown", OutcomeUnknown, True),
        ("idempotency-key-prohibited", KeyRefused, True),
        ("unauthorized", CredentialsRefused, True),
    ],
)
def test_what_no_retry_mends(
    colour: Colour, site: Site, code: str, error: type[Exception], pending: bool
) -> None:
    script(site, ours(code))
    client = colour.client(site.url)
    for _ in range(2):
        with pytest.raises(error, match="a reason") as raised:
            colour.do(client.intent("x").post("/"))
    assert raised.value.answer.status_code == ours(code).status
    assert bool(client.pending()) is pending
    # What is known is remembered, what may still change is asked for.
    assert len(site.heard) == (2 if pending else 1)


def test_errors_have_the_class_that_the_server_raises(colour: Colour, site: Site) -> None:
    script(site, ours("idempotency-key-reused"))
    with pytest.raises(KeyReusedThere) as raised:
        colour.do(colour.client(site.url).intent("x").post("/"))
    assert raised.value.code == "idempotency-key-reused"


def test_better_credentials_finish_it(colour: Colour, site: Site) -> None:
    site.answer = lambda heard: (
        DONE if heard.headers.get("authorization") == "Bearer good" else ours("unauthorized")
    )
    client = colour.client(site.url, headers={"Authorization": "Bearer bad"})
    with pytest.raises(CredentialsRefused):
        colour.do(client.intent("x").post("/"))
    client.http.headers["Authorization"] = "Bearer good"
    (intent,) = client.pending()
    assert colour.do(intent.resume()).status_code == 201
    assert len(set(keys(site))) == 1


def test_it_is_elsewhere(colour: Colour, site: Site) -> None:
    """Nothing was done there, and nothing is known."""
    script(site, Reply(status=307, headers={"Location": "/orders/"}))
    client = colour.client(site.url)
    with pytest.raises(Redirected) as raised:
        colour.do(client.intent("x").post("/orders"))
    assert raised.value.answer is not None
    assert raised.value.answer.headers["location"] == "/orders/"
    assert len(client.pending()) == 1


def test_an_answer_that_cannot_be_read_is_asked_for_again(colour: Colour) -> None:
    answers = [
        httpx.Response(200, headers={"Content-Encoding": "gzip"}, stream=Parts(b"no gzip")),
        httpx.Response(200, content=b"done"),
    ]
    transport = httpx.MockTransport(lambda _: answers.pop(0))
    answer = colour.do(colour.client("http://shop", transport=transport).intent("x").post("/"))
    assert (answer.text, answer.attempts) == ("done", 2)


def test_an_answer_that_comes_drop_by_drop_is_late_at_last(colour: Colour) -> None:
    clock = FrozenClock()

    class Drops(Parts):
        def __iter__(self) -> Iterator[bytes]:
            for _ in range(1000):
                clock.advance(1000)
                yield b"drop"
            raise AssertionError("nobody looks at the time")

    transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=Drops()))
    client = colour.client(
        "http://shop", transport=transport, clock=clock, backoff=Backoff(deadline=30)
    )
    with pytest.raises(GaveUp, match="the answer took too long"):
        colour.do(client.intent("x").post("/"))


class Parts(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body for both colours."""

    def __init__(self, *parts: bytes) -> None:
        self._parts = parts

    def __iter__(self) -> Iterator[bytes]:
        yield from self._parts

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self:
            yield part


def test_cookies_are_not_taken(colour: Colour, site: Site) -> None:
    """A server that knows callers by them would take the second attempt for somebody else's."""
    script(site, Reply(status=503, headers={"Set-Cookie": "session=1; Path=/"}), DONE)
    colour.do(colour.client(site.url).intent("x").post("/"))
    assert [each.headers.get("cookie") for each in site.heard] == [None, None]
    own = colour.client(site.url, cookies={"mine": "1"})
    colour.do(own.intent("x").post("/"))
    assert site.heard[-1].headers["cookie"] == "mine=1"
