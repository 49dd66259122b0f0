"""Deliveries that no provider signed, or not like this, or not lately: none has an effect, and
every refusal is the same."""

import hashlib
import hmac
import json
import time
from collections.abc import Callable

import pytest

from oncekey.webhooks.delivery import Delivery
from tests.fixtures.hooks import NAMES, PUBLIC, Hook, Hooks, names_of, sample, sid_of
from tests.fixtures.stronghold import Stronghold
from tests.fixtures.wiretap import Answer

STRONGHOLD = {"more": f'\n[webhooks]\npublic_url = "{PUBLIC}"\n'}
TIMED = ["slack", "standard", "stripe", "svix"]


def without_signature(delivery: Delivery) -> Delivery:
    kept = tuple(
        line for line in delivery.headers if b"sign" not in line[0] and b"hmac" not in line[0]
    )
    assert kept != delivery.headers
    return delivery._replace(headers=kept)


def with_signature(delivery: Delivery, change: Callable[[bytes], bytes]) -> Delivery:
    lines = [
        (name, change(value) if b"signature" in name or b"hmac" in name else value)
        for name, value in delivery.headers
    ]
    assert tuple(lines) != delivery.headers
    return delivery._replace(headers=tuple(lines))


def reserialised(body: bytes) -> bytes:
    """The same by value, by other bytes."""
    return json.dumps(json.loads(body), separators=(" , ", " : ")).encode() + b"\n"


TAMPERED: dict[str, Callable[[Delivery], Delivery]] = {
    "unsigned": without_signature,
    "an empty signature": lambda each: with_signature(each, lambda _: b""),
    "half a signature": lambda each: with_signature(each, lambda value: value[: len(value) // 2]),
    "a signature that goes on": lambda each: with_signature(each, lambda value: value + b"00"),
    "a signature of zeros": lambda each: with_signature(
        each, lambda value: bytes(48 if chr(c).isalnum() else c for c in value)
    ),
    "a signature in other letters": lambda each: with_signature(each, bytes.swapcase),
    "a truncated body": lambda each: each._replace(body=each.body[:-1]),
    "half a body": lambda each: each._replace(body=each.body[: len(each.body) // 2]),
    "no body": lambda each: each._replace(body=b""),
    "a body that goes on": lambda each: each._replace(body=each.body + b"&x=1\n"),
    "a body after a blank": lambda each: each._replace(body=b" " + each.body),
    "another body": lambda each: each._replace(body=each.body.replace(b"a", b"b") + b"1"),
}


def refused(fort: Stronghold, hook: Hook, delivery: Delivery) -> Answer:
    answer = hook.send(delivery)
    assert (answer.status, answer.code) == (401, "signature-invalid")
    assert fort.effects == []
    return answer


@pytest.mark.parametrize("name", NAMES)
def test_the_good_one_is_good(fort: Stronghold, hooks: Hooks, name: str) -> None:
    """What the others are measured by."""
    hook = hooks(name)
    answer = hook.send(sample(hook, "good"))
    assert answer.status == 200
    assert {each.whose for each in fort.effects} == {("acme", "shop", "service:webhook-ingest")}
    assert names_of(fort.effects)[0].startswith(f"{name}-")


@pytest.mark.parametrize("attack", TAMPERED)
@pytest.mark.parametrize("name", NAMES)
def test_a_bit_less_than_good_is_bad(
    fort: Stronghold, hooks: Hooks, name: str, attack: str
) -> None:
    hook = hooks(name)
    refused(fort, hook, TAMPERED[attack](sample(hook, "tampered")))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "twilio"])
def test_the_same_by_value_is_not_the_same(fort: Stronghold, hooks: Hooks, name: str) -> None:
    hook = hooks(name)
    delivery = sample(hook, "reserialised")
    refused(fort, hook, delivery._replace(body=reserialised(delivery.body)))


@pytest.mark.parametrize("name", NAMES)
def test_every_refusal_is_the_same(fort: Stronghold, hooks: Hooks, name: str) -> None:
    hook = hooks(name)
    good = sample(hook, "same")
    secrets = [hook.provider.new_secret() for _ in range(2)]
    tried = [refused(fort, hook, attack(good)).shape for attack in TAMPERED.values()]
    tried += [refused(fort, hook, sample(hook, "same", secret=each)).shape for each in secrets]
    assert len(set(tried)) == 1
    assert {verdict for verdict, _ in hook.logged("refused")[:5]} == {"refused"}


@pytest.mark.parametrize("age", [301.0, 86_400.0, -301.0])
@pytest.mark.parametrize("name", TIMED)
def test_what_is_stale_is_bad(fort: Stronghold, hooks: Hooks, name: str, age: float) -> None:
    hook = hooks(name)
    if name == "stripe" and age < 0:
        return  # Only Stripe can sign a time to come, and its own libraries allow any.
    refused(fort, hook, sample(hook, "stale", age=age))


def test_older_schemes_do_not_stand_in_for_the_newer(fort: Stronghold, hooks: Hooks) -> None:
    github, stripe = hooks("github"), hooks("stripe")
    body, now = b'{"id": "evt_old"}', int(time.time())
    sha1 = hmac.new(github.secret.encode(), body, hashlib.sha1).hexdigest()
    sha256 = hmac.new(stripe.secret.encode(), b"%d.%b" % (now, body), hashlib.sha256).hexdigest()
    for hook, lines in (
        (github, {"X-Hub-Signature": f"sha1={sha1}"}),
        (github, {"X-Hub-Signature-256": f"sha1={sha1}"}),
        (github, {"X-Hub-Signature-256": sha1}),
        (stripe, {"Stripe-Signature": f"t={now},v0={sha256}"}),
        (stripe, {"Stripe-Signature": f"v1={sha256}"}),
        (stripe, {"Stripe-Signature": f"t={now + 1},t={now},v1={sha256}"}),
        (stripe, {"Stripe-Signature": f"t=0{now}.0,v1={sha256}"}),
        (stripe, {"Stripe-Signature": f"t={now}," + f"v1={'0' * 64}," * 5000 + f"v1={sha256}"}),
    ):
        named = {"x-github-delivery": "old", **lines}
        headers = tuple((name.lower().encode(), value.encode()) for name, value in named.items())
        answer = hook.send(Delivery(PUBLIC + hook.path, headers, body))
        assert answer.status in {401, 431}
    assert fort.effects == []
    good = {"Stripe-Signature": f"t={now},v1={sha256}"}
    headers = tuple((name.lower().encode(), value.encode()) for name, value in good.items())
    assert stripe.send(Delivery(PUBLIC + stripe.path, headers, body)).status == 200


@pytest.mark.parametrize("name", NAMES)
def test_a_second_signature_makes_none_of_both(fort: Stronghold, hooks: Hooks, name: str) -> None:
    hook = hooks(name)
    good, bad = sample(hook, "two"), sample(hook, "two", secret=hook.provider.new_secret())
    theirs = [line for line in bad.headers if line not in good.headers]
    for headers in ((*good.headers, *theirs), (*theirs, *good.headers)):
        refused(fort, hook, good._replace(headers=headers))


def test_the_ends_of_the_fields_of_a_form_cannot_be_moved(fort: Stronghold, hooks: Hooks) -> None:
    """Twilio signs names and values with nothing between them, so one signature fits many forms."""
    hook = hooks("twilio")
    sid = sid_of("moved")
    good = hook.signed(f"MessageSid={sid}&MessageStatus=sent&To=1555".encode())
    assert hook.send(good).status == 200
    for form in (
        f"MessageSid={sid[:-1]}&MessageStatus=sent&To=1555&{sid[-1]}=",
        f"MessageSid={sid}MessageStatus&sent=&To=1555",
        f"MessageSid={sid}&MessageStatussent=&To=1555",
        f"MessageSid={sid}&MessageStatus=sen&tTo=1555",
        f"MessageSid={sid}&MessageStatus=sentTo1555",
        f"MessageSid{sid}MessageStatussentTo1555=",
        f"MessageSid={sid}MessageStatussentTo1555",
        f"MessageSid={sid}&MessageStatus=sentTo&1555=",
        f"To=1555&MessageStatus=sent&MessageSid={sid}",
        f"MessageSid={sid}&MessageSid={sid}&MessageStatus=sent&To=1555",
    ):
        assert hook.send(good._replace(body=form.encode())).status in {200, 400, 401}
    assert names_of(fort.effects) == [f"twilio-{sid}:sent"]
