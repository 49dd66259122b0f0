"""What is particular to one provider: challenges, interactions, public keys, other spellings."""

import base64
import json
import zlib
from urllib.parse import urlencode

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

from oncekey.core.errors import IdentifierMissing, InvalidInput, SignatureInvalid
from oncekey.webhooks.delivery import Delivery, Event
from tests.fixtures.deliveries import NOW, PROVIDERS, URL, secret_of, signed


def verified(name: str, body: bytes | object, *headers: tuple[bytes, bytes]) -> Event:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    delivery = signed(name, Delivery(URL, headers, text))
    return PROVIDERS[name].verify(delivery, [secret_of(name)], NOW)


def renamed(delivery: Delivery, names: dict[bytes, bytes]) -> Delivery:
    return delivery._replace(headers=tuple((names.get(k, k), v) for k, v in delivery.headers))


def replaced(delivery: Delivery, name: bytes, value: bytes) -> Delivery:
    pairs = tuple((k, value if k == name else v) for k, v in delivery.headers)
    return delivery._replace(headers=pairs)


def test_github_sends_its_json_in_a_form_too() -> None:
    payload = json.dumps({"action": "opened", "title": "ünï + 1&2"})
    event = verified("github", urlencode({"payload": payload}).encode())
    assert event.items[0].body == payload.encode()
    assert event.proof == event.delivery.body


@pytest.mark.parametrize("body", [b"payload=%7B%7D&payload=2", b"payload=%ff", b"other=1", b"{}"])
def test_github_without_one_payload_is_taken_as_it_came(body: bytes) -> None:
    assert verified("github", body).items[0].body == body


def test_the_old_signature_of_github_is_not_enough() -> None:
    delivery = renamed(signed("github"), {b"x-hub-signature-256": b"x-hub-signature"})
    with pytest.raises(SignatureInvalid, match="X-Hub-Signature-256"):
        PROVIDERS["github"].verify(delivery, [secret_of("github")], NOW)


@pytest.mark.parametrize("name", [b"x-github-delivery", b"x-shopify-webhook-id"])
def test_an_identifier_of_a_header_must_be_usable(name: bytes) -> None:
    provider = "github" if b"github" in name else "shopify"
    for value in (b"a\x00b", b"x" * 256, b"a\x85b"):
        with pytest.raises(IdentifierMissing):
            verified(provider, b"{}", (name, value), (b"x-shopify-event-id", value))
    delivery = renamed(signed(provider), {name: b"x-other", b"x-shopify-event-id": b"x-more"})
    with pytest.raises(IdentifierMissing, match="the delivery has no X-"):
        PROVIDERS[provider].verify(delivery, [secret_of(provider)], NOW)


def test_shopify_names_the_delivery_before_the_event() -> None:
    names = {b"x-shopify-webhook-id": b"x-other"}
    delivery = signed("shopify", Delivery(URL, ((b"x-shopify-event-id", b"event-1"),), b"{}"))
    both = PROVIDERS["shopify"].verify(delivery, [secret_of("shopify")], NOW)
    assert both.items[0].identifier not in {"event-1", ""}
    one = PROVIDERS["shopify"].verify(renamed(delivery, names), [secret_of("shopify")], NOW)
    assert one.items[0].identifier == "event-1"


def test_the_newer_headers_of_shopify_have_no_x() -> None:
    delivery = signed("shopify")
    short = {name: name.removeprefix(b"x-") for name, _ in delivery.headers}
    event = PROVIDERS["shopify"].verify(renamed(delivery, short), [secret_of("shopify")], NOW)
    assert event.items[0].identifier == "hook-1"


def test_the_challenge_of_slack_is_answered_once_it_is_verified() -> None:
    body = {"type": "url_verification", "challenge": "3eZbrw1aB"}
    event = verified("slack", body)
    assert (event.items, event.reply) == ((), b"3eZbrw1aB")
    unsigned = Delivery(URL, (), json.dumps(body).encode())
    with pytest.raises(SignatureInvalid):
        PROVIDERS["slack"].verify(unsigned, [secret_of("slack")], NOW)


@pytest.mark.parametrize("challenge", [None, 7, "", "a\nb", "x" * 256])
def test_a_challenge_of_slack_is_text(challenge: object) -> None:
    with pytest.raises(IdentifierMissing):
        verified("slack", {"type": "url_verification", "challenge": challenge})


def test_a_command_and_an_interaction_of_slack_are_named_by_what_set_them_off() -> None:
    command = urlencode({"command": "/x", "trigger_id": "13.37.abc"}).encode()
    assert [(i.identifier, i.body) for i in verified("slack", command).items] == [
        ("13.37.abc", command)
    ]
    payload = json.dumps({"type": "block_actions", "trigger_id": "12.34.def"})
    form = urlencode({"payload": payload, "trigger_id": "of nobody"}).encode()
    (item,) = verified("slack", form).items
    assert (item.identifier, item.body, item.signed) == ("12.34.def", payload.encode(), True)


@pytest.mark.parametrize("body", [b"", b"command=%2Fx", b"payload=%7B%7D", b"payload=x", b"\xff"])
def test_what_slack_does_not_name_has_no_name(body: bytes) -> None:
    with pytest.raises(IdentifierMissing):
        verified("slack", body)


SEED = bytes(range(32))
PUBLIC = Ed25519PrivateKey.from_private_bytes(SEED).public_key().public_bytes_raw()


@pytest.mark.parametrize("private", [SEED, SEED + PUBLIC], ids=["seed", "seed and public key"])
@pytest.mark.parametrize("name", ["standard", "svix"])
def test_what_a_private_key_signs_the_public_one_verifies(name: str, private: bytes) -> None:
    signer = "whsk_" + base64.b64encode(private).decode()
    public = "whpk_" + base64.b64encode(PUBLIC).decode()
    provider = PROVIDERS[name]
    delivery = provider.sign(Delivery(URL, (), b"{}"), signer, NOW)
    for secrets in ([public], [signer], [provider.new_secret(), public]):
        assert provider.verify(delivery, secrets, NOW).items
    with pytest.raises(SignatureInvalid):
        provider.verify(delivery._replace(body=b"[]"), [public], NOW)
    with pytest.raises(InvalidInput, match="whsk_"):
        provider.sign(delivery, public, NOW)


def test_a_public_key_is_not_a_shared_secret() -> None:
    """Else whoever knows it could sign with it."""
    forged = PROVIDERS["standard"].sign(
        Delivery(URL, (), b"{}"), "whsec_" + base64.b64encode(PUBLIC).decode(), NOW
    )
    public = "whpk_" + base64.b64encode(PUBLIC).decode()
    with pytest.raises(SignatureInvalid):
        PROVIDERS["standard"].verify(forged, [public], NOW)


def test_another_spelling_of_a_signature_is_another_signature() -> None:
    signer = "whsk_" + base64.b64encode(SEED).decode()
    delivery = PROVIDERS["standard"].sign(Delivery(URL, (), b"{}"), signer, NOW)
    value = dict(delivery.headers)[b"webhook-signature"]
    last = value[-3:-2]
    alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    twin = alphabet[alphabet.index(last) + 1 : alphabet.index(last) + 2]
    other = value[:-3] + twin + b"=="
    assert base64.b64decode(other[4:]) == base64.b64decode(value[4:])
    for spelled in (other, value.rstrip(b"="), value + b"="):
        with pytest.raises(SignatureInvalid):
            PROVIDERS["standard"].verify(
                replaced(delivery, b"webhook-signature", spelled), [signer], NOW
            )


def test_svix_also_sends_the_headers_of_the_standard() -> None:
    delivery = signed("svix")
    plain = {name: name.replace(b"svix-", b"webhook-") for name, _ in delivery.headers}
    event = PROVIDERS["svix"].verify(renamed(delivery, plain), [secret_of("svix")], NOW)
    assert event.items[0].identifier == "msg_1"
    with pytest.raises(SignatureInvalid, match="webhook-id"):
        PROVIDERS["standard"].verify(delivery, [secret_of("svix")], NOW)


def test_the_identifier_of_the_standard_is_signed() -> None:
    with pytest.raises(SignatureInvalid):
        PROVIDERS["standard"].verify(
            replaced(signed("standard"), b"webhook-id", b"msg_2"), [secret_of("standard")], NOW
        )


def test_a_certificate_of_paypal_is_never_looked_for_elsewhere() -> None:
    delivery = signed("paypal")
    for url in (
        b"https://evil.example/cert.pem",
        b"http://api.paypal.com/cert",
        b"https://api.paypal.com.evil.example/cert",
        b"https://evil.example/.paypal.com/",
        b"https://api.paypal.com@evil.example/",
        b"https://evilpaypal.com/cert",
        b"file:///etc/passwd",
    ):
        with pytest.raises(SignatureInvalid, match="not a URL of PayPal"):
            PROVIDERS["paypal"].verify(
                replaced(delivery, b"paypal-cert-url", url), [secret_of("paypal")], NOW
            )


def test_paypal_signs_one_way_only() -> None:
    delivery = replaced(signed("paypal"), b"paypal-auth-algo", b"SHA1withRSA")
    with pytest.raises(SignatureInvalid, match="SHA256withRSA"):
        PROVIDERS["paypal"].verify(delivery, [secret_of("paypal")], NOW)


def with_checksum(start: bytes, wanted: int) -> bytes:
    """`start` and then blanks, of which some are tabs: a checksum is linear in its bits."""
    blanks = [b" "] * 64
    plain = zlib.crc32(start + b"".join(blanks))
    basis: dict[int, tuple[int, set[int]]] = {}
    for at in range(len(blanks)):
        tabbed = b"".join(b"\t" if each == at else b" " for each in range(len(blanks)))
        effect, used = zlib.crc32(start + tabbed) ^ plain, {at}
        while effect and effect.bit_length() in basis:
            other, chosen = basis[effect.bit_length()]
            effect, used = effect ^ other, used ^ chosen
        if effect:
            basis[effect.bit_length()] = (effect, used)
    missing, tabs = plain ^ wanted, set[int]()
    while missing:
        effect, used = basis[missing.bit_length()]
        missing, tabs = missing ^ effect, tabs ^ used
    return start + b"".join(b"\t" if at in tabs else b" " for at in range(len(blanks)))


def test_whatever_fits_a_signature_of_paypal_is_one_proof() -> None:
    """A checksum is all that is signed of a body, and one that fits is easily made."""
    delivery = signed("paypal")
    forged = with_checksum(b'{"id":"WH-forged"}', zlib.crc32(delivery.body))
    provider, secrets = PROVIDERS["paypal"], [secret_of("paypal")]
    event = provider.verify(delivery._replace(body=forged), secrets, NOW)
    assert (event.items[0].identifier, event.items[0].signed) == ("WH-forged", False)
    assert event.proof == provider.verify(delivery, secrets, NOW).proof


def test_a_public_key_in_place_of_the_certificate_verifies_paypal() -> None:
    webhook, _, pem = secret_of("paypal").partition(":")
    key = load_pem_private_key(pem.encode(), None).public_key()
    public = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    provider = PROVIDERS["paypal"]
    assert provider.verify(signed("paypal"), [f"{webhook}:{public}"], NOW).items
    for secret in (public, f"other:{public}", f"{webhook}:", f"{webhook}:-----BEGIN CERTIFICATE"):
        with pytest.raises(SignatureInvalid):
            provider.verify(signed("paypal"), [secret], NOW)
    with pytest.raises(InvalidInput, match="private key"):
        provider.sign(signed("paypal"), f"{webhook}:{public}", NOW)
