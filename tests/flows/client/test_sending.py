"""A client, and a server that answers as it is told: what is sent, how often, what comes of it."""

import gzip
import json
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from oncekey import InvalidInput, KeyInvalid, PayloadTooLarge
from oncekey import KeyReused as KeyReusedThere
from oncekey.client import (
    STRIPE,
    Answered,
    Attempted,
    Backoff,
    Captured,
    Client,
    CredentialsRefused,
    Dialect,
    Failed,
    GaveUp,
    IntentChanged,
    IntentTooOld,
    KeyRefused,
    KeyReused,
    OutcomeNotKept,
    OutcomeUnknown,
    Retrying,
)
from oncekey.wire.problem import problem
from tests.fixtures.colours import Colour
from tests.fixtures.frozen import FrozenClock
from tests.fixtures.site import Heard, Reply, Site

DONE = Reply(b'{"id": 7}', 201, {"Content-Type": "application/json", "X-Operation-Id": "op_1"})


def ours(code: str) -> Reply:
    status, headers, body = problem(code, "a reason")
    lines = {name.decode(): value.decode() for name, value in headers}
    del lines["content-length"]
    return Reply(body, status, lines)


def script(site: Site, *replies: Reply) -> None:
    """One after the other; the last one from then on."""
    left = list(replies)
    site.answer = lambda _: left.pop(0) if len(left) > 1 else left[0]


def keys(site: Site) -> list[str]:
    return [each.headers["idempotency-key"] for each in site.heard]


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
    assert colour.rests == [3.0]


def test_still_running_uses_up_time_and_no_attempts(colour: Colour, site: Site) -> None:
    script(site, *[ours("request-in-progress")] * 20, DONE)
    client = colour.client(site.url, backoff=Backoff(attempts=2))
    assert colour.do(client.intent("x").post("/")).attempts == 21
    assert colour.rests == [1.0] * 20


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


# -- one name is one intent ---------------------------------------------------------------


def test_a_finished_intent_is_remembered(colour: Colour, site: Site) -> None:
    script(site, DONE)
    client = colour.client(site.url)
    first = colour.do(client.intent("x").post("/", json={"a": 1, "b": 2}))
    again = colour.do(client.intent("x").post("/", json={"b": 2, "a": 1.0}))
    assert (again.source, again.attempts, again.content) == ("remembered", 0, first.content)
    assert (again.headers["x-operation-id"], again.key) == ("op_1", first.key)
    assert again.raise_for_status().json() == {"id": 7}
    assert len(site.heard) == 1


def test_it_is_forgotten_in_time(colour: Colour, site: Site) -> None:
    clock = FrozenClock()
    script(site, DONE)
    client = colour.client(site.url, clock=clock, remember=60.0)
    colour.do(client.intent("x").post("/"))
    clock.advance(60_001)
    colour.do(client.intent("x").post("/"))
    assert len(set(keys(site))) == 2


def test_or_at_once(colour: Colour, site: Site) -> None:
    script(site, DONE)
    client = colour.client(site.url, remember=0)
    for _ in range(2):
        colour.do(client.intent("x").post("/"))
    assert len(set(keys(site))) == 2


def test_an_answer_too_large_to_remember_is_asked_for_again(colour: Colour, site: Site) -> None:
    script(site, Reply(b"x" * (1 << 20) + b"y", 200))
    client = colour.client(site.url)
    for _ in range(2):
        assert len(colour.do(client.intent("x").post("/", json=1)).content) == (1 << 20) + 1
    assert len(site.heard) == 2
    assert len(set(keys(site))) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"url": "/orders", "json": {"item": "cake"}},
        {"url": "/orders?x=1", "json": {"item": "tea"}},
        {"url": "/others", "json": {"item": "tea"}},
        {"url": "/orders", "content": b"tea"},
    ],
)
def test_another_request_under_the_same_name_is_refused(
    colour: Colour, site: Site, other: dict[str, Any]
) -> None:
    script(site, Reply(status=500))
    client = colour.client(site.url, backoff=Backoff(attempts=1))
    with pytest.raises(GaveUp):
        colour.do(client.intent("x").post("/orders", json={"item": "tea"}))
    with pytest.raises(IntentChanged, match="'x' was captured with another request"):
        colour.do(client.intent("x").post(**other))
    assert len(site.heard) == 1
    (intent,) = client.pending()
    assert intent.url == f"{site.url}/orders"


def test_many_at_once_under_one_name(site: Site) -> None:
    """Two clicks: both are sent with the same key, and the server knows what to do."""
    colour = Colour(Client)
    client = colour.client(site.url)
    site.gate.clear()
    script(site, DONE)
    threads = [
        threading.Thread(target=lambda: client.intent("x").post("/", json=1)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert site.arrived.acquire(timeout=30)
    site.gate.set()
    for thread in threads:
        thread.join()
    assert len(keys(site)) == 4
    assert len(set(keys(site))) == 1
    colour.close()


def test_two_servers_never_share_a_name(colour: Colour, site: Site, other_site: Site) -> None:
    script(site, DONE)
    script(other_site, DONE)
    intents = colour.client(site.url).terms.intents
    for each in (site, other_site):
        colour.do(colour.client(each.url, intents=intents).intent("x").post("/"))
    assert keys(site) != keys(other_site)


def test_given_up(colour: Colour, site: Site) -> None:
    script(site, Reply(status=500), Reply(status=500), DONE)
    client = colour.client(site.url, backoff=Backoff(attempts=1))
    intent = client.intent("x")
    with pytest.raises(GaveUp):
        colour.do(intent.post("/"))
    colour.do(intent.abandon())
    assert client.pending() == []
    with pytest.raises(GaveUp):
        colour.do(client.intent("x").post("/other"))
    assert len(set(keys(site))) == 2


def test_an_old_intent_is_not_sent_blindly(colour: Colour, site: Site) -> None:
    clock = FrozenClock()
    script(site, Reply(status=500), DONE)
    client = colour.client(site.url, clock=clock, backoff=Backoff(attempts=1))
    with pytest.raises(GaveUp):
        colour.do(client.intent("x").post("/"))
    clock.advance(24 * 3600 * 1000 + 1)
    (intent,) = client.pending()
    with pytest.raises(IntentTooOld, match=r"recover\(\) asks"):
        colour.do(intent.resume())
    with pytest.raises(IntentTooOld):
        colour.do(client.intent("x").post("/"))
    assert len(site.heard) == 1
    assert colour.do(intent.resume(force=True)).status_code == 201


def test_captured_and_never_sent(colour: Colour, site: Site) -> None:
    client = colour.client(site.url)
    key = client.intent("x").key
    (intent,) = client.pending()
    assert (intent.key, intent.method, intent.url) == (key, None, None)
    assert colour.do(intent.resume()) is None
    assert colour.do(intent.recover()) is None
    script(site, DONE)
    assert colour.do(client.intent("x").post("/")).key == key


# -- what is refused before anything is sent ------------------------------------------------


@pytest.mark.parametrize(
    "act, error, words",
    [
        (lambda intent: intent.request("GET", "/"), InvalidInput, "GET has no effect"),
        (lambda intent: intent.post("/", content=b"x" * (9 << 20)), PayloadTooLarge, "8 MiB"),
        (lambda intent: intent.post("/", content=_parts()), InvalidInput, "as a whole"),
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


# -- other dialects, hooks, odds and ends ----------------------------------------------------


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
