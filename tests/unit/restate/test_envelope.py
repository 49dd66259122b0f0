"""What goes through Restate with a request comes back as it went, and only to whom it belongs."""

import json
from secrets import token_bytes

from hypothesis import given
from hypothesis import strategies as st

from oncekey.core.events import TRACEPARENT
from oncekey.core.model import Kind, Outcome
from oncekey.stores.restate.envelope import (
    MARK,
    Envelope,
    encode,
    envelope_of,
    mark_in,
    seal,
    unseal,
)
from oncekey.stores.restate.forward import _ran_of

LINES = st.lists(st.tuples(st.binary(), st.binary())).map(tuple)


def envelope(**changes: object) -> Envelope:
    values = {
        "nonce": "0a1b",
        "number": 7,
        "namespace": "t-acme:shop:user:alice",
        "endpoint": "POST /orders/{id}",
        "key": "k-1",
        "fingerprint": b"f" * 16,
        "request_id": '"quoted\\',
        "retention": "interactive",
        "kept": 1000,
        "created_at": 12,
        "method": b"POST",
        "target": b"/orders/1?a=1",
        "lines": ((b"accept", b"*/*"),),
        "body": b"\0\xff",
        "secret": b"s" * 16,
    }
    return Envelope(**{**values, **changes})  # type: ignore[arg-type]


def test_an_envelope_arrives_as_it_was_sent() -> None:
    sent = envelope()
    assert envelope_of(encode(sent)) == sent


def test_whose_call_it_is_can_be_read_in_a_journal() -> None:
    sent = envelope()
    line = {"name": MARK.decode(), "value": sent.mark.decode()}
    journal = json.dumps({"Command": {"Input": {"headers": [line]}}}, separators=(",", ":"))
    mark = mark_in(journal)
    assert mark is not None
    assert (mark.nonce, mark.number, mark.ref) == (sent.nonce, 7, sent.ref)
    assert mark.record.request_id == sent.request_id
    assert b"s" * 16 not in sent.mark
    assert mark_in("{}") is None


def test_who_is_called_again_is_not_told_of_the_span() -> None:
    lines = ((b"content-type", b"text/plain"), (TRACEPARENT, b"00-1-2-01"))
    written = envelope().settled(Outcome(Kind.RESPONSE, 201, lines, b"made"), 20)
    first = _ran_of(written).first
    assert first is not None
    assert first.headers == lines[:1]


@given(LINES)
def test_what_is_sealed_is_opened_by_its_secret_alone(
    lines: tuple[tuple[bytes, bytes], ...],
) -> None:
    secret = token_bytes(16)
    sealed = seal(lines, secret)
    assert unseal(sealed, secret) == lines
    for _, value in lines:
        assert len(value) < 4 or value not in sealed
