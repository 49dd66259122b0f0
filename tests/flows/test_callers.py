"""Callers by API key: secrets are told once, expiry is exact, revocation is quick."""

import base64
from collections.abc import AsyncIterator

import pytest

import oncekey
from oncekey.core.api_keys import KeepApiKey, digest_of
from oncekey.core.callers import Caller, Callers
from oncekey.core.errors import InvalidInput, ScopeInvalid
from oncekey.core.ledger import Ledger
from oncekey.core.steps import Steps
from tests.fixtures.frozen import FrozenClock

pytestmark = pytest.mark.anyio


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
async def ledger(clock: FrozenClock) -> AsyncIterator[Ledger]:
    opened = oncekey.open("memory://", clock=clock)
    yield opened
    await opened.aclose()


async def test_a_secret_leads_to_its_caller(ledger: Ledger) -> None:
    callers = Callers(ledger)
    key, secret = await callers.create(
        "acme", project="shop", subject="user:ada@example.org", label="CI"
    )

    assert secret.startswith("ok_")
    assert len(base64.urlsafe_b64decode(secret.removeprefix("ok_") + "=")) == 32
    caller = await callers.identify(secret)
    assert caller == Caller("acme", "shop", "user:ada@example.org", key.id)
    assert caller is not None
    assert caller.namespace == "t-acme:shop:user:ada@example.org"


async def test_without_a_subject_a_key_is_a_service_of_its_own(
    ledger: Ledger, clock: FrozenClock
) -> None:
    callers = Callers(ledger)
    first, _ = await callers.create("acme")
    clock.advance(1)
    second, _ = await callers.create("acme")

    assert first.subject == f"service:{first.id}"
    assert first.subject != second.subject
    assert await callers.list("acme") == [second, first]


async def test_only_a_digest_of_the_secret_is_kept(ledger: Ledger) -> None:
    key, secret = await Callers(ledger).create("acme")

    assert secret not in repr(key)
    assert digest_of(secret) not in (secret.encode(), None)
    assert secret[3:] not in repr(vars(ledger.store))


@pytest.mark.parametrize(
    "secret",
    ["", "ok_", "x", "ok_" + "A" * 42, "ok_" + "A" * 43, "ok_" + "A" * 44, "ok_" + "é" * 43],
)
async def test_nobody_is_known_by_a_secret_that_was_not_given_out(
    ledger: Ledger, secret: str
) -> None:
    callers = Callers(ledger)
    await callers.create("acme")

    assert await callers.identify(secret) is None


async def test_an_expiry_is_exact_although_the_key_is_at_hand(
    ledger: Ledger, clock: FrozenClock
) -> None:
    callers = Callers(ledger, cache_seconds=3600)
    key, secret = await callers.create("acme", expires_in=60)

    clock.advance(59_999)
    assert await callers.identify(secret) is not None
    clock.advance(1)
    assert await callers.identify(secret) is None
    assert key.expires_at == clock.now()


async def test_a_revocation_holds_at_once_here_and_soon_elsewhere(
    ledger: Ledger, clock: FrozenClock
) -> None:
    here, elsewhere = Callers(ledger), Callers(ledger, cache_seconds=2)
    key, secret = await here.create("acme")
    assert await here.identify(secret) == await elsewhere.identify(secret)

    revoked = await here.revoke(key.id)
    assert revoked == key._replace(revoked_at=clock.now())
    assert await here.identify(secret) is None
    assert await elsewhere.identify(secret) is not None
    clock.advance(2000)
    assert await elsewhere.identify(secret) is None
    assert await here.revoke("ak_0000000000000000") is None


async def test_the_cache_is_bounded(ledger: Ledger) -> None:
    callers = Callers(ledger, cache_size=2)
    made = [await callers.create("acme") for _ in range(4)]
    for _, secret in made:
        assert await callers.identify(secret) is not None

    assert len(callers._believed) == 2


async def test_an_id_that_is_taken_is_drawn_again(ledger: Ledger) -> None:
    draws = iter([5, 5, 6])
    callers = Callers(ledger, randbits=lambda _: next(draws))
    first, _ = await callers.create("acme")
    second, secret = await callers.create("acme")

    assert first.id != second.id
    assert (await callers.identify(secret) or first)[3] == second.id


@pytest.mark.parametrize(
    "options, error",
    [
        ({"tenant": "no slug"}, ScopeInvalid),
        ({"project": "no slug"}, ScopeInvalid),
        ({"subject": "robot:1"}, ScopeInvalid),
        ({"subject": "user:\0"}, ScopeInvalid),
        ({"label": "x" * 201}, InvalidInput),
        ({"label": "a\nb"}, InvalidInput),
        ({"expires_in": 0}, InvalidInput),
        ({"expires_in": 1e12}, InvalidInput),
    ],
)
async def test_what_cannot_be_a_caller_gets_no_key(
    ledger: Ledger, options: dict[str, object], error: type[Exception]
) -> None:
    callers = Callers(ledger)
    with pytest.raises(error):
        await callers.create(**({"tenant": "acme"} | options))
    assert await callers.list() == []


async def test_the_keys_of_admins_and_callers_are_good_for_one_thing_only(ledger: Ledger) -> None:
    callers = Callers(ledger)
    key, caller = await callers.create("acme")
    admin_key, admin = await callers.create("acme", role="admin")

    assert admin.startswith("oka_")
    assert await callers.identify(admin) is None
    assert await callers.identify_admin(caller) is None
    assert await callers.identify(caller) == Caller("acme", "_tenant", key.subject, key.id)
    found = await callers.identify_admin(admin)
    assert found == Caller("acme", "_tenant", admin_key.subject, admin_key.id, "admin")


async def test_a_secret_of_one_role_under_the_prefix_of_the_other_is_nobodys(
    ledger: Ledger,
) -> None:
    callers = Callers(ledger)
    _, caller = await callers.create("acme")
    _, admin = await callers.create("acme", role="admin")

    for wrong in (caller.replace("ok_", "oka_"), admin.replace("oka_", "ok_")):
        assert await callers.identify(wrong) is None
        assert await callers.identify_admin(wrong) is None


async def test_a_row_of_the_other_role_is_refused_whatever_its_secret_looks_like(
    ledger: Ledger,
) -> None:
    callers = Callers(ledger)
    key, _ = await callers.create("acme")
    secret = "oka_" + "a" * 43
    digest = digest_of(secret, "admin")
    assert digest is not None

    def keep() -> Steps[bool]:
        return (yield KeepApiKey(key._replace(id="ak_0000000000000001"), digest))

    assert await ledger.arun(keep())
    assert await callers.identify_admin(secret) is None


async def test_an_admin_can_be_revoked(ledger: Ledger) -> None:
    callers = Callers(ledger)
    key, secret = await callers.create("acme", role="admin")
    assert await callers.identify_admin(secret)
    await callers.revoke(key.id)
    assert await callers.identify_admin(secret) is None
