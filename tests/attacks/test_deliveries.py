"""Good deliveries in the wrong hands, at the wrong place, too often, too large or too slow."""

import gzip
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.fixtures.hooks import NAMES, PUBLIC, Hook, Hooks, names_of, sample, sid_of
from tests.fixtures.stronghold import Effect, Stronghold, bearer, head
from tests.fixtures.wiretap import Answer

MAX_BODY = 100_000
STRONGHOLD = {"more": f'\n[webhooks]\npublic_url = "{PUBLIC}"\nmax_body = {MAX_BODY}\n'}
# The header that names a delivery, where that is not signed.
UNSIGNED = {"github": "x-github-delivery", "shopify": "x-shopify-webhook-id",
            "twilio": "i-twilio-idempotency-token"}  # fmt: skip


def ended(effects: list[Effect], *names: str) -> None:
    """Each name has had one effect, and nothing else has had any."""
    assert names_of(effects) == sorted(names)


# -- the same again ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_captured_delivery_has_no_second_effect(
    fort: Stronghold, hooks: Hooks, name: str
) -> None:
    hook = hooks(name)
    captured = sample(hook, "captured")
    first = hook.send(captured)
    before = len(fort.effects)
    answers = [hook.send(captured) for _ in range(3)]
    assert {each.status for each in (first, *answers)} == {200}
    assert len(fort.effects) == before >= 1


@pytest.mark.parametrize("name", UNSIGNED)
def test_nor_has_it_under_a_name_that_is_made_up(fort: Stronghold, hooks: Hooks, name: str) -> None:
    hook, header = hooks(name), UNSIGNED[name].encode()
    captured = sample(hook, "renamed")
    named = [line for line in captured.headers if line[0] != header]
    lines = lambda new: captured._replace(headers=(*named, (header, new)))  # noqa: E731
    assert hook.send(lines(b"first")).status == 200
    for other in (b"second", b"FIRST", b"first ", b"first:1", b"first%20", b"\xe9", b"f" * 255):
        answer = hook.send(lines(other))
        assert answer.status in {200, 400}
        if answer.status == 200 and other.strip() != b"first":
            assert json.loads(answer.body)["reason"] == "repeated-body"
    ended(fort.effects, f"{name}-first")


@pytest.mark.parametrize("name", UNSIGNED)
def test_two_names_are_none(fort: Stronghold, hooks: Hooks, name: str) -> None:
    hook, header = hooks(name), UNSIGNED[name].encode()
    good = sample(hook, "two-names")
    named = [line for line in good.headers if line[0] != header]
    answer = hook.send(good._replace(headers=(*named, (header, b"a"), (header, b"b"))))
    assert answer.status in {400, 401}
    assert fort.effects == []


def test_many_at_once_are_one(fort: Stronghold, hooks: Hooks) -> None:
    hook = hooks("stripe")
    delivery = hook.signed({"id": "evt_many"})
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: hook.send(delivery), range(32)))
    assert {each.status for each in answers} <= {200, 503}
    ended(fort.effects, "stripe-evt_many")


# -- somebody else's -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_secret_of_another_tenant_opens_nothing(
    fort: Stronghold, hooks: Hooks, name: str
) -> None:
    ours, theirs = hooks(name), hooks(name, "other")
    moved = sample(ours, "crossed")
    for hook, delivery in (
        (ours, sample(ours, "crossed", secret=theirs.secret)),
        (theirs, sample(theirs, "crossed", secret=ours.secret)),
        (theirs, moved._replace(url=moved.url.replace(ours.id, theirs.id))),
    ):
        assert hook.send(delivery).code == "signature-invalid"
    assert fort.effects == []


def test_the_same_event_of_two_tenants_is_two(fort: Stronghold, hooks: Hooks) -> None:
    for hook in (hooks("stripe"), hooks("stripe", "other")):
        for _ in range(2):
            assert hook.send(hook.signed({"id": "evt_shared"})).status == 200
    assert [each.whose[0] for each in fort.effects] == ["acme", "other"]
    ended(fort.effects, "stripe-evt_shared", "stripe-evt_shared")


def test_a_webhook_that_is_not_there_tells_nothing(fort: Stronghold, hooks: Hooks) -> None:
    hook = hooks("stripe")
    delivery = hook.signed({"id": "evt_guess"})
    number = hook.id.removeprefix("wh_")
    tried = {}
    for path in (
        "/api/v1/webhooks/stripe/wh_nothing",
        f"/api/v1/webhooks/github/{hook.id}",
        f"/api/v1/webhooks/standard/{hook.id}",
        f"/api/v1/webhooks/made-up/{hook.id}",
        f"/api/v1/webhooks/Stripe/{hook.id}",
        f"/api/v1/webhooks/stripe/{hook.id}x",
        f"/api/v1/webhooks/stripe/{hook.id[:-1]}",
        f"/api/v1/webhooks/stripe/{hook.id.swapcase()}",
        f"/api/v1/webhooks/stripe/wh_{number[::-1]}",
        f"/api/v1/webhooks/stripe/{number}",
        f"/api/v1/webhooks/stripe/{hook.id}/",
        f"/api/v1/webhooks/stripe/{hook.id}/x",
        f"/api/v1/webhooks/stripe/%77h_{number}x",
        f"/api/v1/webhooks/stripe//{hook.id}",
        f"/api/v1/webhooks/stripe/../stripe/{hook.id}",
        f"/api/v1/webhooks/stripe/{hook.id}%00",
        f"/api/v1/webhooks/stripe/{hook.id};x",
        f"/api/v1/webhooks/{hook.id}",
        "/api/v1/webhooks/stripe/wh_' OR 1=1 --".replace(" ", "%20"),
        "/api/v1/webhooks/stripe/wh_" + "a" * 5000,
    ):
        tried[path] = hook.send(delivery._replace(url=PUBLIC + path)).shape
    assert {status for status, _, _ in tried.values()} == {404}
    assert len(set(tried.values())) == 1
    assert fort.effects == []


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "HEAD"])
def test_nor_does_another_method(fort: Stronghold, hooks: Hooks, method: str) -> None:
    shapes = []
    for path in (hooks("stripe").path, "/api/v1/webhooks/stripe/wh_nothing"):
        with fort.wire(head(path, method=method, credentials=None)) as wire:
            shapes.append(wire.answer(bodiless=method == "HEAD").shape)
    assert shapes[0] == shapes[1]
    assert shapes[0][0] == 405


# -- what goes with it ---------------------------------------------------------------------------


def test_nothing_a_client_adds_has_influence(fort: Stronghold, hooks: Hooks) -> None:
    hook = hooks("stripe")
    for number, lines in enumerate(
        (
            ["Idempotency-Key: mine"],
            ["Idempotency-Key: mine", "Idempotency-Key: theirs"],
            ["Idempotency-Key: a:b", "Idempotency_Key: t-other:x:user:y:z"],
            [f"Authorization: Bearer {bearer()}", "X-Tenant-Id: other", "X_Subject: user:root"],
            ["Authorization: Bearer bad.bad.bad", "X-API-Key: ok_bad"],
            ["X-HTTP-Method-Override: DELETE", "X-Original-URL: /platform/jobs"],
            ["Connection: x-tenant-id, idempotency-key", "X-Forwarded-For: 10.0.0.1"],
            ["Idempotency-Key: mine", "X-Subject: service:oncekey"],
        )
    ):
        delivery = hook.signed({"id": f"evt_lines{number}"})
        assert [hook.send(delivery, *lines).status for _ in range(2)] == [200, 200]
        effect = fort.effects[-1]
        assert effect.whose == ("acme", "shop", "service:webhook-ingest")
        assert effect.target == "/hooks/in"
        assert effect["x-http-method-override"] == effect["x-original-url"] == []
        assert not any("10.0.0.1" in value for _, value in effect.headers)
    ended(fort.effects, *(f"stripe-evt_lines{number}" for number in range(8)))


def test_nobody_finds_the_answer_to_a_delivery(fort: Stronghold, hooks: Hooks) -> None:
    hook = hooks("stripe")
    number = hook.send(hook.signed({"id": "evt_found"}))["x-operation-id"]
    assert number.startswith("op_")
    callers = [
        bearer(),
        bearer(subject="service:webhook-ingest "),
        bearer(subject="user:service:webhook-ingest"),
        fort.api_key(tenant="acme", project="shop", subject="service:webhook-ingest2")["secret"],
    ]
    for caller in callers:
        for path in (
            f"/api/v1/operations/{number}",
            f"{hook.path}/by-idempotency-key/stripe-evt_found",
            "/hooks/in/by-idempotency-key/stripe-evt_found",
        ):
            assert fort.ask("GET", path, bearer=caller).status_code == 404
    reserved = bearer(subject="service:webhook-ingest")
    assert fort.ask("GET", f"/api/v1/operations/{number}", bearer=reserved).status_code == 401


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1:1", "hooks.example.com:444", ""])
def test_the_host_that_is_asked_for_does_not_matter(
    fort: Stronghold, hooks: Hooks, host: str
) -> None:
    """Twilio signs the URL: the one providers were given, whoever says what."""
    hook = hooks("twilio")
    form = f"MessageSid={sid_of(host)}&MessageStatus=sent".encode()
    lines = [f"X-Forwarded-Host: {host}", "X-Forwarded-Proto: http", f"Forwarded: host={host}"]
    theirs = hook.signed(form, public=f"http://{host}")
    assert hook.send(theirs, *lines, host=host).status == 401
    assert hook.send(theirs, *lines).status == 401
    assert fort.effects == []
    assert hook.send(hook.signed(form), *lines, host=host).status == 200


def test_nor_does_a_query_that_is_added(fort: Stronghold, hooks: Hooks) -> None:
    twilio, stripe = hooks("twilio"), hooks("stripe")
    good = twilio.signed(f"MessageSid={sid_of('query')}&MessageStatus=sent".encode())
    for end in ("?x=1", "?", "?bodySHA256=" + "0" * 64, "?MessageSid=SM2"):
        answer = twilio.send(good._replace(url=good.url + end))
        assert answer.status == (200 if end == "?" else 401)
    delivery = stripe.signed({"id": "evt_query"})
    for end in ("?x=1", "?x=2", "?id=evt_other"):
        assert stripe.send(delivery._replace(url=delivery.url + end)).status == 200
    assert [each.target for each in fort.effects] == ["/hooks/in", "/hooks/in"]


def test_a_form_is_not_read_as_json_nor_json_as_a_form(fort: Stronghold, hooks: Hooks) -> None:
    """The content type is not signed, and says what is."""
    hook = hooks("twilio")
    form = hook.signed(f"MessageSid={sid_of('kind')}&MessageStatus=sent".encode())
    batch = hook.signed([{"specversion": "1.0", "id": "EZkind"}])
    encoded = b"application/x-www-form-urlencoded"
    for delivery, kind in (
        (form, b"application/json"),
        (form, b"text/plain"),
        (batch, encoded),
        (batch, b""),
    ):
        lines = [line for line in delivery.headers if line[0] != b"content-type"]
        hook.send(delivery._replace(headers=(*lines, (b"content-type", kind))))
    hook.send(form)
    hook.send(batch)
    ended(fort.effects, f"twilio-{sid_of('kind')}:sent", "twilio-EZkind")


# -- batches and bodies --------------------------------------------------------------------------


def test_a_batch_is_deduplicated_event_by_event(fort: Stronghold, hooks: Hooks) -> None:
    hook = hooks("twilio")
    kind = {"content-type": "application/json"}

    def batch(*names: str) -> Answer:
        return hook.send(hook.signed([{"specversion": "1.0", "id": name} for name in names], kind))

    assert batch("EZ1", "EZ1", "EZ2").status == 200
    assert batch("EZ2", "EZ3", "EZ1").status == 200
    assert batch("EZ:1", "EZ%3A1", "EZ%3a1", "ez1").status == 200
    ended(
        fort.effects,
        *("twilio-EZ1", "twilio-EZ2", "twilio-EZ3", "twilio-ez1"),
        *("twilio-EZ:1", "twilio-EZ%253A1", "twilio-EZ%253a1"),
    )


@pytest.mark.parametrize(
    "events",
    [
        [{"id": "EZgood"}, {}],
        [{"id": "EZgood"}, {"id": ""}],
        [{"id": "EZgood"}, {"id": 7}],
        [{"id": "EZgood"}, {"id": None}],
        [{"id": "EZgood"}, {"id": "x" * 300}],
        [{"id": "EZgood"}, {"id": ":" * 100 + "\u20ac" * 60}],
        [{"id": "EZgood"}, {"id": "a\u0000b"}],
        [{"id": "EZgood"}, {"id": "a\r\nX-Tenant-Id: other"}],
        [{"id": "EZgood"}, "EZbare"],
        [{"id": "EZgood"}, [{"id": "EZnested"}]],
        [],
    ],
    ids=range(11),
)
def test_of_a_batch_with_a_nameless_one_none_is_done(
    fort: Stronghold, hooks: Hooks, events: list[Any]
) -> None:
    hook = hooks("twilio")
    answer = hook.send(hook.signed(events, {"content-type": "application/json"}))
    assert (answer.status, answer.code) == (400, "identifier-missing")
    assert fort.effects == []


@pytest.mark.parametrize(
    "body",
    [
        b'{"id": "evt_twice", "id": "evt_once"}',
        b'{"id": "evt_once", "data": {"id": "evt_twice"}}',
        b'{"\\u0069d": "evt_once"}',
        b'{"ID": "evt_twice", "Id": "evt_twice", "id": "evt_once"}',
    ],
)
def test_of_two_names_in_a_body_one_counts_always(
    fort: Stronghold, hooks: Hooks, body: bytes
) -> None:
    """Only its provider can sign it; whichever it takes, a captured one has no second effect."""
    hook = Hook(fort, "stripe")
    delivery = hook.signed(body)
    assert [hook.send(delivery).status for _ in range(3)] == [200] * 3
    assert hook.send(hook.signed({"id": "evt_once"})).status == 200
    ended(fort.effects, "stripe-evt_once")


def test_bodies_of_any_kind_break_nothing(fort: Stronghold, hooks: Hooks) -> None:
    hook = hooks("stripe")
    for body in (b"", b"null", b"[]", b'"evt"', b"{", b"[" * 90_000, b"\xff\xfe{", b'{"id": 1}',
                 b'{"id": "' + b"x" * 90_000 + b'"}', b'{"id": ["evt"]}', b'{"id": "\\ud800"}',
                 b'{"id": "evt_n", "n": ' + b"9" * 90_000 + b"}", b"\0" * 1000):  # fmt: skip
        assert hook.send(hook.signed(body)).status in {200, 400}
    keys = [str(each.key).rpartition(":")[2] for each in fort.effects]
    assert set(keys) <= {"stripe-evt_n"}


def test_what_is_too_large_is_neither_verified_nor_kept(fort: Stronghold, hooks: Hooks) -> None:
    hook = Hook(fort, "github")
    good = sample(hook, "large")
    large = good._replace(body=b"x" * (MAX_BODY + 1))
    assert hook.send(large).code == "request-too-large"
    forever = hook.request(good._replace(body=b"")).replace(
        b"Content-Length: 0", b"Transfer-Encoding: chunked"
    )
    piece = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
    with fort.wire(forever + piece * 10) as wire:
        assert wire.answer().code == "request-too-large"
    edge = hook.signed(b"x" * MAX_BODY, {"x-github-delivery": "edge"})
    assert hook.send(edge).status == 200
    assert hook.logged("accepted", "edge") == [("accepted", "edge")]
    ended(fort.effects, "github-edge")


def test_a_packed_body_is_not_unpacked(fort: Stronghold, hooks: Hooks) -> None:
    """100 MB in 100 kB: who unpacks it before he verifies it has lost."""
    hook, before = hooks("github"), fort.memory
    bomb = gzip.compress(b"\0" * 95_000_000, 9)
    assert len(bomb) < MAX_BODY
    lines = {"x-github-delivery": "bomb", "content-encoding": "gzip"}
    for _ in range(2):
        assert hook.send(hook.signed(bomb, lines)).status == 200
        unsigned = hook.signed(bomb, lines, secret="another")
        assert hook.send(unsigned).status == 401
    (effect,) = fort.effects
    assert effect.body == bomb
    assert fort.memory - before < 32


def test_a_slow_delivery_keeps_nobody_waiting(fort: Stronghold, hooks: Hooks) -> None:
    hook = hooks("github")
    request = hook.request(sample(hook, "slow"))
    slow = [fort.wire(request[:-5]) for _ in range(50)]
    try:
        assert hook.send(sample(hook, "quick")).status == 200
        assert fort.ask(key="quick", bearer=bearer()).status_code == 201
        for wire in slow:
            assert wire.answer().code == "request-timeout"
            assert wire.is_over()
    finally:
        for wire in slow:
            wire.socket.close()
    assert len(fort.effects) == 2
