"""Keys that a request brings, other headers, and clients that are there already."""

from typing import Any

import httpx
import pytest

from oncekey import ConfigurationError, Ledger
from oncekey.outbound import (
    IdempotentTransport,
    protect,
)
from tests.fixtures.calling import client, failing, keys
from tests.fixtures.site import Site


@pytest.mark.parametrize(
    "existing, agent, brought, kept",
    [
        ("auto", "python-httpx/1", "mine", True),
        ("auto", "python-httpx/1", "6ba7b810-9dad-41d1-80b4-00c04fd430c8", True),
        ("auto", "Stripe/v1 PythonBindings/16", "6ba7b810-9dad-41d1-80b4-00c04fd430c8", False),
        ("auto", "Stripe/v1 PythonBindings/16", "order-7", True),
        ("keep", "Stripe/v1 PythonBindings/16", "6ba7b810-9dad-41d1-80b4-00c04fd430c8", True),
        ("replace", "python-httpx/1", "mine", False),
    ],
)
def test_a_key_that_is_brought(
    ledger: Ledger, site: Site, existing: str, agent: str, brought: str, kept: bool
) -> None:
    headers = {"User-Agent": agent, "Idempotency-Key": brought}

    def order() -> None:
        with client(existing=existing) as http:
            http.post(f"{site.url}/charges", headers=headers)

    ledger.once("order:1", order)
    assert (keys(site) == [brought]) is kept


def test_another_header(ledger: Ledger, site: Site) -> None:
    def order() -> None:
        with client(header="PayPal-Request-Id") as http:
            http.post(f"{site.url}/charges")

    ledger.once("order:1", order)
    assert "idempotency-key" not in site.heard[0].headers
    assert len(site.heard[0].headers["paypal-request-id"]) == 36


def test_a_body_that_flows(ledger: Ledger, site: Site) -> None:
    def order() -> None:
        with client() as http:
            http.post(f"{site.url}/charges", content=iter([b"a", b"b"]))

    for _ in range(2):
        failing(ledger, order)
    assert len(set(keys(site))) == 1
    assert None not in keys(site)


def test_an_existing_client_is_protected(ledger: Ledger, site: Site) -> None:
    http = httpx.Client(trust_env=False)
    assert protect(protect(http)) is http

    ledger.once("order:1", lambda: http.post(f"{site.url}/charges") and None)
    http.close()
    assert None not in keys(site)
    with pytest.raises(ConfigurationError, match=r"not object"):
        protect(object())


@pytest.mark.parametrize(
    "wrong", [{"existing": "maybe"}, {"outside": "maybe"}, {"secret": "x" * 65}]
)
def test_what_cannot_be(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        IdempotentTransport(**wrong)
