"""Deliveries that the providers' own libraries signed, good and bad, each with its answer."""

import json
from pathlib import Path
from typing import Any

import pytest

from oncekey.core.errors import IdentifierMissing, SignatureInvalid
from oncekey.webhooks.delivery import Delivery, Event
from oncekey.webhooks.provider import Provider
from oncekey.webhooks.providers.registry import providers_of
from oncekey.webhooks.providers.stripe import Stripe

VECTORS = Path(__file__).parents[2] / "vectors"
NAMES = {"standard_webhooks": "standard"}
FILES = sorted(path for path in VECTORS.glob("*.json") if path.stem != "idempotency_key_header")
NEW_YEAR = 1767225600
# Signed, and without an id of the provider's own; what is signed names them all the same.
NAMED_BY_US = {
    "adyen-payload_header_ok": "balancePlatform.transfer.created:1",
    "slack-docs_vector": "398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c",
    "twilio-port_8443_signed": "SM2aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:delivered",
}
NAMELESS = {
    "stripe-empty_body",
    "twilio-multi_value_param",
    "twilio-sdk_docs_vector",
    "twilio-sdk_json_vector",
}
UNSIGNED = {"github", "shopify", "paypal"}


def cases() -> list[Any]:
    found = []
    for path in FILES:
        document = json.loads(path.read_text())
        for case in document["cases"]:
            name = f"{path.stem}-{case['name']}"
            found.append(pytest.param(NAMES.get(path.stem, path.stem), name, case, id=name))
    return found


def secrets_of(case: dict[str, Any]) -> list[str]:
    if "cert_pem" in case:
        return [f"{case['webhook_id']}:{case['cert_pem']}"]
    if "public_key" in case:
        return [case["public_key"]]
    return list(case["secrets"])


def delivery_of(case: dict[str, Any]) -> Delivery:
    headers = dict(case["headers"])
    if "content_type" in case:
        headers["Content-Type"] = case["content_type"]
    pairs = tuple((name.lower().encode(), value.encode()) for name, value in headers.items())
    url = case.get("url", "https://hooks.example.com/")
    return Delivery(url, pairs, case["body"].encode())


def verified(name: str, case: dict[str, Any]) -> Event:
    provider: Provider = providers_of()[name]
    if name == "stripe":
        provider = Stripe(case["tolerance_s"])
    return provider.verify(delivery_of(case), secrets_of(case), case.get("now", NEW_YEAR))


@pytest.mark.parametrize("provider, name, case", cases())
def test_the_vector_gets_its_answer(provider: str, name: str, case: dict[str, Any]) -> None:
    if not case["expected"]["valid"]:
        with pytest.raises(SignatureInvalid):
            verified(provider, case)
        return
    if name in NAMELESS:
        assert case["delivery_id"] is None
        with pytest.raises(IdentifierMissing):
            verified(provider, case)
        return
    event = verified(provider, case)
    wanted = case["delivery_id"] or NAMED_BY_US[name]
    expected = wanted if isinstance(wanted, list) else [wanted]
    assert [item.identifier for item in event.items] == expected
    assert all(item.signed == (provider not in UNSIGNED) for item in event.items)


def test_there_is_a_vector_of_every_provider() -> None:
    assert {NAMES.get(path.stem, path.stem) for path in FILES} == set(providers_of())
