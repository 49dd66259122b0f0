"""The page on calls made inside an operation: run downwards, beside a Stripe of its own."""

import pytest

from tests.fixtures.pages import code_of
from tests.fixtures.stripe_api import stripe_api

PAGE = "how-to/outbound.md"
CLIENT = '"sk_test_yours", '


# Stripe's library hands bodies to httpx in a way that httpx would rather not have.
@pytest.mark.filterwarnings("ignore:Use 'content:DeprecationWarning")
def test_stripe_is_asked_after_all_the_rest_with_a_derived_key() -> None:
    code = code_of(PAGE)
    assert code.count(CLIENT) == 1
    with stripe_api() as (stripe, url):
        there = CLIENT + f"base_addresses={{'api': {url!r}}}, "
        for _ in range(2):
            exec(compile(code.replace(CLIENT, there), PAGE, "exec"), {"__name__": "page"})
    # A key that the library draws would be another one each time, and pay again.
    assert len(stripe.keys) == 2
    assert [each["metadata[order]"] for each in stripe.payments] == ["43"]
