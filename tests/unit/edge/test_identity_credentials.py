"""Which credential counts, how long it is remembered, and what makes it forgotten."""

import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest

import oncekey
from oncekey.core.callers import Callers
from oncekey.core.errors import IdentityUnavailable, LedgerClosed, Unauthorized
from oncekey.core.ledger import Ledger
from oncekey.edge.identity.claims import ClaimRules
from oncekey.edge.identity.identities import Identities
from oncekey.edge.identity.jwk import ring_of_secret
from oncekey.edge.identity.jwks import GivenKeys
from oncekey.edge.identity.jwt import JwtVerifier
from oncekey.edge.identity.known import Verified
from oncekey.edge.identity.local_keys import LocalKeys
from tests.fixtures.credentials import PEER, AnyKey, Lines, api_key, bearer
from tests.fixtures.frozen import FrozenClock
from tests.fixtures.tokens import NOW, SECRET, claims_of, secret_key, signed

pytestmark = pytest.mark.anyio


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(NOW * 1000)


@pytest.fixture
async def ledger(clock: FrozenClock) -> AsyncIterator[Ledger]:
    opened = oncekey.open("memory://", clock=clock)
    yield opened
    await opened.aclose()


@pytest.fixture
def callers(ledger: Ledger) -> Callers:
    return Callers(ledger)


@pytest.fixture
def any_key(clock: FrozenClock) -> AnyKey:
    return AnyKey(clock)


@pytest.fixture
def identities(clock: FrozenClock, callers: Callers, any_key: AnyKey) -> Identities:
    keys = GivenKeys(ring_of_secret(SECRET))
    return Identities(
        jwt=JwtVerifier(keys, ClaimRules(), clock),
        api_keys=LocalKeys(callers),
        unkey=any_key,
        clock=clock,
    )


def token(**claims: Any) -> str:
    return signed(secret_key(), claims_of(**claims), algorithm="HS256")


# -- which one counts ------------------------------------------------------------------------


async def test_a_token_a_key_of_ours_and_any_other_key(
    identities: Identities, callers: Callers, any_key: AnyKey
) -> None:
    key, secret = await callers.create("acme", project="shop")

    expected = f"t-acme:shop:service:{key.id}"
    for lines, namespace in (
        (bearer(token()), "t-acme:shop:user:ada"),
        (bearer(secret), expected),
        (api_key(secret), expected),
        (bearer(secret) + api_key(secret), expected),
        (bearer("other"), "t-other:_tenant:service:any"),
        (api_key("other"), "t-other:_tenant:service:any"),
    ):
        found = await identities.identify(lines, PEER)
        assert found is not None
        assert (found.namespace, found.role) == (namespace, "caller")
    assert any_key.asked == ["other", "other"]


async def test_without_credentials_nobody_calls(identities: Identities) -> None:
    lines = [(b"host", b"shop"), (b"cookie", b"session=1"), (b"x-tenant-id", b"acme")]

    assert await identities.identify(lines, PEER) is None
    assert identities.recall(lines, PEER) is None


async def test_where_nothing_is_verified_nothing_is_looked_at() -> None:
    assert await Identities().identify(bearer("anything"), PEER) is None


@pytest.mark.parametrize("scheme", [b"bearer", b"BEARER", b" Bearer", b"Bearer  "])
async def test_the_scheme_is_written_in_any_case(identities: Identities, scheme: bytes) -> None:
    lines = [(b"authorization", scheme + b" " + token().encode() + b" ")]

    assert await identities.identify(lines, PEER)


BASIC = b"Basic " + base64.b64encode(b"ada:secret")


@pytest.mark.parametrize(
    "lines",
    [
        [(b"authorization", BASIC)],
        [(b"authorization", b"Digest username=ada")],
        [(b"authorization", b"Bearer")],
        [(b"authorization", b"Bearer ")],
        [(b"authorization", b"")],
        [(b"authorization", b"bare-token")],
        [(b"authorization", b"Bearer a b")],
        [(b"authorization", b"Bearer a\tb")],
        [(b"authorization", b"Bearer t\xc3\xbcr")],
        [(b"authorization", b"Bearer a\0b")],
        [(b"authorization", b"Bearer " + b"x" * 40_000)],
        [(b"x-api-key", b"")],
        [(b"x-api-key", b"  ")],
        [(b"x-api-key", b"a b")],
        [(b"x-api-key", b"\xff")],
        [(b"authorization", b"Bearer acme"), (b"x-api-key", b"other")],
        [(b"authorization", b"Bearer acme"), (b"x-api-key", b"")],
        [(b"authorization", BASIC), (b"x-api-key", b"acme")],
        [(b"authorization", b"Bearer acme"), (b"authorization", b"Bearer other")],
        [(b"authorization", b"Bearer acme"), (b"authorization", b"Bearer acme")],
        [(b"authorization", b"Bearer acme"), (b"authorization", BASIC)],
        [(b"x-api-key", b"acme"), (b"x-api-key", b"acme")],
        [(b"authorization", b"Bearer a.b.c.d.e")],
        [(b"authorization", b"Bearer ok_")],
        [(b"authorization", b"Bearer ok_acme")],
        [(b"authorization", b"Bearer oka_acme")],
        [(b"x-api-key", b"ok_" + b"A" * 43)],
        [(b"x-api-key", b"ok_a.b.c")],
    ],
    ids=lambda lines: "|".join(repr(value[:30]) for _, value in lines),
)
async def test_what_is_no_credential_or_more_than_one(
    identities: Identities, any_key: AnyKey, lines: Lines
) -> None:
    with pytest.raises(Unauthorized) as caught:
        await identities.identify(lines, PEER)
    assert identities.recall(lines, PEER) is None
    assert any_key.asked == []
    assert not any(value and value.decode("latin-1") in str(caught.value) for _, value in lines)


async def test_a_token_is_told_to_nobody_else(identities: Identities, any_key: AnyKey) -> None:
    """As an API key, or where no tokens are taken, it is refused, not asked about."""
    for lines, asked in (
        (api_key(token()), identities),
        (bearer(token()), Identities(unkey=any_key)),
    ):
        with pytest.raises(Unauthorized):
            await asked.identify(lines, PEER)
    assert any_key.asked == []


async def test_admins_are_told_from_callers(identities: Identities, callers: Callers) -> None:
    _, secret = await callers.create("acme", subject="user:root", role="admin")

    found = await identities.identify(bearer(secret), PEER)
    assert secret.startswith("oka_")
    assert found is not None
    assert found.role == "admin"
    assert identities.recall(bearer(secret), PEER) == found
    with pytest.raises(Unauthorized):
        await identities.identify(bearer("ok_" + secret.removeprefix("oka_")), PEER)


async def test_no_key_of_ours_makes_its_owner_oncekey_itself(
    identities: Identities, callers: Callers
) -> None:
    _, secret = await callers.create("acme", subject="service:webhook-ingest")

    with pytest.raises(Unauthorized, match="reserved"):
        await identities.identify(bearer(secret), PEER)


# -- what is remembered ----------------------------------------------------------------------


async def test_what_was_verified_is_recalled_for_the_same_lines_only(
    identities: Identities,
) -> None:
    lines = bearer(token())
    assert identities.recall(lines, PEER) is None
    found = await identities.identify(lines, PEER)

    assert identities.recall(lines, PEER) == found
    assert identities.recall([*lines, (b"x-more", b"1")], "198.51.100.1") == found
    value = lines[1][1]
    for other in (
        [(b"authorization", value + b" ")],
        [(b"authorization", value[:-1])],
        [(b"authorization", value.lower())],
        [(b"x-api-key", value)],
        [(b"authorization", value), (b"authorization", value)],
        [(b"authorization", value), (b"x-api-key", b"other")],
        [(b"authorization", value), (b"x-api-key", b"")],
    ):
        assert identities.recall(other, PEER) is None


async def test_a_token_is_recalled_for_a_minute(identities: Identities, clock: FrozenClock) -> None:
    lines = bearer(token())
    await identities.identify(lines, PEER)

    clock.advance(59_999)
    assert identities.recall(lines, PEER)
    clock.advance(1)
    assert identities.recall(lines, PEER) is None


async def test_a_token_is_never_recalled_after_its_expiry(
    identities: Identities, clock: FrozenClock
) -> None:
    lines = bearer(token(exp=NOW + 2))
    await identities.identify(lines, PEER)

    clock.advance(1_999)
    assert identities.recall(lines, PEER)
    clock.advance(1)
    assert identities.recall(lines, PEER) is None
    clock.advance(-1)
    assert identities.recall(lines, PEER) is None


async def test_a_key_of_ours_is_recalled_for_two_seconds(
    identities: Identities, callers: Callers, clock: FrozenClock
) -> None:
    _, secret = await callers.create("acme")
    await callers.identify(secret)
    clock.advance(1_500)
    lines = bearer(secret)
    await identities.identify(lines, PEER)

    clock.advance(499)
    assert identities.recall(lines, PEER)
    clock.advance(1)
    assert identities.recall(lines, PEER) is None


async def test_a_key_of_ours_is_never_recalled_after_its_expiry(
    identities: Identities, callers: Callers, clock: FrozenClock
) -> None:
    _, secret = await callers.create("acme", expires_in=0.7)
    lines = api_key(secret)
    await identities.identify(lines, PEER)

    clock.advance(699)
    assert identities.recall(lines, PEER)
    clock.advance(1)
    assert identities.recall(lines, PEER) is None
    with pytest.raises(Unauthorized):
        await identities.identify(lines, PEER)


async def test_a_revocation_is_seen_at_once(identities: Identities, callers: Callers) -> None:
    key, secret = await callers.create("acme")
    lines = bearer(secret)
    await identities.identify(lines, PEER)
    assert identities.recall(lines, PEER)

    await callers.revoke(key.id)
    assert identities.recall(lines, PEER) is None
    with pytest.raises(Unauthorized):
        await identities.identify(lines, PEER)


async def test_what_its_source_no_longer_holds_is_forgotten(
    identities: Identities, any_key: AnyKey
) -> None:
    await identities.identify(bearer("acme"), PEER)
    await identities.identify(bearer(token()), PEER)

    any_key.generation += 1
    assert identities.recall(bearer("acme"), PEER) is None
    assert identities.recall(bearer(token()), PEER)


async def test_all_can_be_forgotten(identities: Identities) -> None:
    lines = bearer(token())
    await identities.identify(lines, PEER)

    identities.forget()
    assert identities.recall(lines, PEER) is None
    assert await identities.identify(lines, PEER)
    assert identities.recall(lines, PEER)


async def test_an_answer_that_was_under_way_is_forgotten_too(clock: FrozenClock) -> None:
    class Forgetful(AnyKey):
        async def verify(self, secret: str) -> Verified:
            verified = await super().verify(secret)
            identities.forget()
            return verified

    identities = Identities(unkey=Forgetful(clock), clock=clock)

    assert await identities.identify(bearer("acme"), PEER)
    assert identities.recall(bearer("acme"), PEER) is None


async def test_a_refusal_is_not_remembered(identities: Identities, any_key: AnyKey) -> None:
    for _ in range(2):
        with pytest.raises(IdentityUnavailable):
            await identities.identify(bearer("away"), PEER)
    assert any_key.asked == ["away", "away"]


async def test_those_not_heard_of_longest_are_forgotten_first(clock: FrozenClock) -> None:
    identities = Identities(unkey=AnyKey(clock), clock=clock, remembered=3)
    for name in ("a", "b", "c"):
        await identities.identify(bearer(name), PEER)
    assert identities.recall(bearer("a"), PEER)

    await identities.identify(bearer("d"), PEER)
    assert [name for name in "abcd" if identities.recall(bearer(name), PEER)] == ["a", "c", "d"]


async def test_no_credential_is_kept(identities: Identities) -> None:
    secret = token()
    await identities.identify(bearer(secret), PEER)

    kept = repr(identities._memory._entries)
    assert "user:ada" in kept
    assert secret not in kept
    assert secret.rpartition(".")[2] not in kept


async def test_a_store_that_is_away_lets_nobody_in(clock: FrozenClock) -> None:
    ledger = oncekey.open("memory://", clock=clock)
    _, secret = await Callers(ledger).create("acme")
    await ledger.aclose()

    with pytest.raises(LedgerClosed):
        await Identities(api_keys=LocalKeys(Callers(ledger))).identify(bearer(secret), PEER)


async def test_closing_closes_what_it_asks(identities: Identities, any_key: AnyKey) -> None:
    await identities.identify(bearer("acme"), PEER)

    await identities.close()
    assert any_key.closed
    assert identities.recall(bearer("acme"), PEER) is None
