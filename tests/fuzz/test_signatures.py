"""Any delivery to any provider: a clean verdict, and what was signed is all that is believed."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncekey.core.errors import IdentifierMissing, InvalidInput, SignatureInvalid
from oncekey.webhooks.content import content_of, headers_of
from oncekey.webhooks.delivery import Delivery
from tests.fixtures.deliveries import NOW, PROVIDERS, URL, secret_of, signed
from tests.fixtures.fuzzing import fuzz

NAMES = sorted(PROVIDERS)
REFUSED = (SignatureInvalid, IdentifierMissing)


@st.composite
def changed(draw: st.DrawFn, content: bytes) -> bytes:
    """The same with a little of it changed, added or left out."""
    at = draw(st.integers(0, len(content)))
    end = draw(st.integers(at, min(len(content), at + 3)))
    return content[:at] + draw(st.binary(max_size=3)) + content[end:]


@pytest.mark.parametrize("name", NAMES)
@fuzz()
@given(data=st.data())
def test_a_delivery_that_was_changed_is_not_believed(name: str, data: Any) -> None:
    good = signed(name)
    first = PROVIDERS[name].verify(good, [secret_of(name)], NOW)
    body, url, headers = good.body, good.url, list(good.headers)
    match data.draw(st.sampled_from(["body", "url", "header", "twice", "left out"])):
        case "body":
            body = data.draw(changed(body))
        case "url":
            url = data.draw(changed(url.encode())).decode("latin-1")
        case what if headers:
            at = data.draw(st.integers(0, len(headers) - 1))
            line, value = headers.pop(at)
            if what != "left out":
                headers.insert(at, (line, data.draw(changed(value))))
            if what == "twice":
                headers.append((line, value))
    delivery = good._replace(body=body, url=url, headers=tuple(headers))
    with suppress(*REFUSED):
        event = PROVIDERS[name].verify(delivery, [secret_of(name)], NOW)
        # Adyen signs some members of its body: those that the names are made of are among them.
        told = [item.identifier for item in event.items]
        assert event.proof == first.proof or name == "adyen"
        assert name != "adyen" or told == [item.identifier for item in first.items]


@pytest.mark.parametrize("name", NAMES)
@fuzz()
@given(data=st.data())
def test_any_bytes_have_a_verdict(name: str, data: Any) -> None:
    known = [line for line, _ in signed(name).headers]
    lines = st.tuples(st.sampled_from([*known, b"content-type"]), st.binary(max_size=60))
    headers = tuple(data.draw(st.lists(lines, max_size=6)))
    url = data.draw(st.sampled_from([URL, "", "https://["]) | st.text(max_size=30))
    delivery = Delivery(url, headers, data.draw(st.binary(max_size=200)))
    with pytest.raises(SignatureInvalid):
        PROVIDERS[name].verify(delivery, [secret_of(name)], NOW)


@pytest.mark.parametrize("name", NAMES)
@fuzz()
@given(data=st.data())
def test_what_is_signed_is_content_or_refused(name: str, data: Any) -> None:
    body = data.draw(changed(signed(name).body) | st.binary(max_size=60))
    delivery = Delivery(URL, signed(name).headers, body)
    with suppress(*REFUSED, InvalidInput):
        sent = PROVIDERS[name].sign(delivery, secret_of(name), NOW)
        event = PROVIDERS[name].verify(sent, [secret_of(name)], NOW)
        headers_of(event)
        for item in event.items:
            assert item.identifier.isprintable()
            content_of(event, item)
