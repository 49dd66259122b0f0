"""What a delivery says, what it is called, and what its provider hears: values, without a store."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncekey.core.errors import (
    ConditionInvalid,
    ConfigurationError,
    IdentifierMissing,
    InvalidInput,
    KeyReused,
    LedgerClosed,
    NameUnknown,
    NotFound,
    PayloadTooLarge,
    PromiseOver,
    SchemaOutdated,
    StoreUnavailable,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from oncekey.core.key import check_name
from oncekey.core.model import Kind, Outcome
from oncekey.webhooks import replies
from oncekey.webhooks.acting import (
    Broken,
    Done,
    Ending,
    Failed,
    Postponed,
    check_then,
    ending_of,
)
from oncekey.webhooks.content import content_of, headers_of, shown
from oncekey.webhooks.delivery import Delivery, Event, Item
from oncekey.webhooks.naming import body_operation_of, operation_of
from oncekey.webhooks.sources import Source
from oncekey.webhooks.then import Forward, Publish, Resolve, Start

FORM = (b"content-type", b"application/x-www-form-urlencoded; charset=utf-8")
SOURCE = Source("wh_1", "acme", "shop", "stripe", Start("fulfil"), "", 0)


def event(body: bytes, *headers: tuple[bytes, bytes], method: str = "POST", url: str = "") -> Event:
    return Event(Delivery(url, headers, body, method), (Item("evt_1", body),))


def content(body: bytes, *headers: tuple[bytes, bytes], **options: str) -> Any:
    made = event(body, *headers, **options)
    return content_of(made, made.items[0])


# -- what it says ------------------------------------------------------------------------------


def test_json_stays_as_it_is_to_the_byte() -> None:
    body = b' {"b": 1.0, "a": [1e2]} '
    assert content(body) == ({"b": 1.0, "a": [100.0]}, body)
    # Whatever the content type says: it is hardly ever signed.
    assert content(body, FORM).body == body


def test_a_form_is_an_object_of_its_fields() -> None:
    found = content(b"a=1&b=x+y&c=%C3%A9&b=z&d=", FORM)
    assert found.value == {"a": "1", "b": ["x y", "z"], "c": "é", "d": ""}
    assert json.loads(found.body) == found.value
    assert content(b"a=1").value == {"a": "1"}


def test_a_form_has_so_many_fields_and_no_more() -> None:
    fields = [f"f{number}=1" for number in range(1001)]
    assert len(content("&".join(fields[:1000]).encode(), FORM).value) == 1000
    with pytest.raises(InvalidInput):
        content("&".join(fields).encode(), FORM)


def test_what_asks_with_get_has_its_form_in_the_url() -> None:
    found = content(b"", method="GET", url="https://x.example/h?a=1&b=2")
    assert found.value == {"a": "1", "b": "2"}
    assert content(b"", url="https://x.example/h?a=1") == (None, b"null")


@pytest.mark.parametrize(
    "body, headers",
    [
        (b"hello", ((b"content-type", b"text/plain"),)),
        (b"a=1", ((b"content-type", b"text/plain"),)),
        (b"a=1", (FORM, FORM)),
        (b"\xff=\xfe", (FORM,)),
        (b'{"a": ', ()),
        (b'{"a": "\xff"}', ()),
        (b"[" * 100_000, ()),
    ],
)
def test_what_is_neither_is_refused(body: bytes, headers: Any) -> None:
    with pytest.raises(InvalidInput, match="neither JSON nor a form"):
        content(body, *headers)


@given(st.binary(max_size=200))
def test_whatever_comes_is_json_or_refused(body: bytes) -> None:
    try:
        found = content(body, FORM)
    except InvalidInput:
        return
    assert json.loads(found.body) == found.value or found.value != found.value


def test_headers_go_by_their_names() -> None:
    made = event(b"", (b"x-a", b" 1 "), (b"X-B", b"2"), (b"x-a", b"\xe9"))
    assert headers_of(made) == {"x-a": "1, é", "x-b": "2"}


def test_nothing_that_proves_anything_is_kept_with_an_event() -> None:
    names = """x-github-event x-hub-signature-256 x-shopify-hmac-sha256 x-twilio-signature
        x-api-key x-auth x-amz-security-token x-forwarded-for authorization cookie host
        x-shopify-topic""".split()
    assert set(shown((name, "v") for name in names)) == {"x-github-event", "x-shopify-topic"}


# -- what it is called -------------------------------------------------------------------------

identifiers = st.text(st.characters(exclude_categories=["Cc"]), min_size=1, max_size=20)


@given(identifiers, identifiers)
def test_two_identifiers_never_make_one_key(one: str, other: str) -> None:
    first, second = (operation_of(SOURCE, Item(each, b"")) for each in (one, other))
    assert (first == second) == (one == other)
    assert check_name(first.ref.key) == first.ref.key
    assert first.ref.key.isascii()
    assert first.ref.key.startswith("stripe-")


def test_a_key_is_as_the_contract_writes_it() -> None:
    operation = operation_of(SOURCE, Item("a:b/c d~é%", b""))
    assert operation.ref.key == "stripe-a:b%2Fc%20d~%C3%A9%25"
    assert operation.ref.scope.namespace == "t-acme:shop:service:webhook-ingest"
    assert operation.ref.scope.endpoint == "POST /api/v1/webhooks/stripe/wh_1"
    assert operation.retention == "webhook"


def test_no_key_is_longer_than_255() -> None:
    assert len(operation_of(SOURCE, Item("e" * 248, b"")).ref.key) == 255
    with pytest.raises(IdentifierMissing, match="it has 256 characters; 255 are allowed"):
        operation_of(SOURCE, Item("e" * 249, b""))


def test_what_is_signed_is_remembered_apart_from_names() -> None:
    made = event(b"body")
    one, other = (body_operation_of(SOURCE, made, made.items[0], key) for key in ("a", "b"))
    assert one.ref == other.ref
    assert one.fingerprint != other.fingerprint
    covered = made._replace(covered=b"what is signed")
    assert body_operation_of(SOURCE, covered, made.items[0], "a").ref != one.ref
    reshaped = event(b"other")._replace(covered=b"what is signed")
    item = reshaped.items[0]
    assert body_operation_of(SOURCE, reshaped, item, "a").ref == (
        body_operation_of(SOURCE, covered, made.items[0], "a").ref
    )


# -- how it ends -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error, ending",
    [
        (PayloadTooLarge("large"), Failed("payload-too-large", "large")),
        (PromiseOver("late"), Failed("promise-over", "late")),
        (InvalidInput("no"), Failed("invalid-input", "no")),
        (StoreUnavailable("away"), Postponed("ledger-unavailable", "away", False)),
        (SchemaOutdated("old"), Postponed("schema-outdated", "old", False)),
        (LedgerClosed("shut"), Postponed("ledger-closed", "shut", False)),
        (NameUnknown("who"), Postponed("name-unknown", "who", True)),
        (ConfigurationError("how"), Postponed("configuration", "how", True)),
        (UpstreamUnreachable("gone"), Postponed("upstream-unreachable", "gone", True)),
        (KeyReused("again"), Done({"status": "done-before"})),
        (NotFound("forgotten"), Done({"status": "done-before"})),
    ],
)
def test_what_an_error_means(error: Any, ending: Ending) -> None:
    assert ending_of(error) == ending


def test_what_broke_off_is_not_sent_again_by_itself() -> None:
    error = UpstreamTimeout()
    assert ending_of(error) == Broken(error, again=False)


@pytest.mark.parametrize(
    "status, final, heard",
    [
        (200, True, 200), (201, True, 200), (204, True, 200), (299, True, 200), (301, True, 301),
        (400, True, 400), (404, True, 404), (422, True, 422), (500, True, 500),
        (401, False, 503), (409, False, 503), (425, False, 503), (429, False, 429),
        (500, False, 500), (503, False, 503),
    ],
)  # fmt: skip
def test_what_is_to_come_again_is_never_a_4xx(status: int, final: bool, heard: int) -> None:
    outcome = Outcome(Kind.RESPONSE, status, ((b"x-a", b"1"),), b"body")
    response = replies.first(outcome, "op_1", final=final)
    assert (response.status, response.body) == (heard, b"body")
    assert response.headers == ((b"x-a", b"1"), (b"x-operation-id", b"op_1"))


def test_an_expression_is_checked_when_a_webhook_is_made() -> None:
    for then in (Forward("/a"), Start("a"), Publish("body.id"), Resolve("'a' + identifier")):
        check_then(then)
    for bad in (Publish("body.id +"), Resolve("1 + 1"), Resolve("input.id")):
        with pytest.raises(ConditionInvalid):
            check_then(bad)
