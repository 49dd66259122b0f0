"""All providers there are: those known by heart, and those declared in the configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from oncekey.core.errors import InvalidInput
from oncekey.webhooks.provider import Provider
from oncekey.webhooks.providers.adyen import Adyen
from oncekey.webhooks.providers.declared import Declared, DeclaredProvider
from oncekey.webhooks.providers.github import GitHub
from oncekey.webhooks.providers.gocardless import GoCardless
from oncekey.webhooks.providers.paypal import PayPal
from oncekey.webhooks.providers.shopify import Shopify
from oncekey.webhooks.providers.slack import Slack
from oncekey.webhooks.providers.square import Square
from oncekey.webhooks.providers.standard import StandardWebhooks, svix
from oncekey.webhooks.providers.stripe import Stripe
from oncekey.webhooks.providers.twilio import Twilio


def providers_of(declared: Iterable[DeclaredProvider] = ()) -> Mapping[str, Provider]:
    """By name. Raises `InvalidInput` for a declared one whose name is taken."""
    found = {provider.name: provider for provider in _known()}
    for each in declared:
        if each.name in found:
            raise InvalidInput(f"provider {each.name}: there is one of that name; choose another")
        found[each.name] = Declared(each)
    return MappingProxyType(found)


def _known() -> tuple[Provider, ...]:
    return (
        Adyen(),
        GitHub(),
        GoCardless(),
        PayPal(),
        Shopify(),
        Slack(),
        Square(),
        StandardWebhooks(),
        Stripe(),
        svix(),
        Twilio(),
    )
