"""Test deliveries: every provider that is known by heart takes its own."""

import pytest

from oncekey.webhooks.delivery import Delivery
from oncekey.webhooks.provider import Provider
from oncekey.webhooks.providers.registry import providers_of
from oncekey.webhooks.samples import headers_of, sample_of

URL = "http://127.0.0.1:8700/api/v1/webhooks/x/wh_1"
NOW = 1_700_000_000.0


@pytest.mark.parametrize("provider", providers_of().values(), ids=lambda each: each.name)
def test_a_sample_is_signed_verified_and_has_an_identifier(provider: Provider) -> None:
    secret = provider.new_secret()
    names = set()
    for _ in range(2):
        signed = provider.sign(Delivery(URL, (), sample_of(provider.name)), secret, NOW)
        (item,) = provider.verify(signed, [secret], NOW).items
        names.add(item.identifier)

    assert len(names) == 2


def test_what_has_happened_is_told_where_its_provider_tells_it() -> None:
    assert headers_of("github", "push") == ((b"x-github-event", b"push"),)
    assert headers_of("github") == ((b"x-github-event", b"ping"),)
    assert headers_of("stripe", "charge.succeeded") == ()
